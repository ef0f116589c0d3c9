package pg

import (
	"context"
	"database/sql"
	"time"
)

// Read returns what convert makes of the rows of a query. fields returns where the columns of a row
// go, in their order; see [OrZero], [UTC] and [Count].
func Read[Row, T any](
	ctx context.Context, db Querier, fields func(*Row) []any, convert func(*Row) (T, error), query string, args ...any,
) ([]T, error) {
	list := []T{}
	err := eachOf(ctx, db, query, args, func(rows *sql.Rows) error {
		var row Row
		if err := rows.Scan(fields(&row)...); err != nil {
			return err
		}
		one, err := convert(&row)
		list = append(list, one)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// Each reads one row of a query after the other into the same places, and calls do after each.
func Each(ctx context.Context, db Querier, into []any, do func() error, query string, args ...any) error {
	return eachOf(ctx, db, query, args, func(rows *sql.Rows) error {
		if err := rows.Scan(into...); err != nil {
			return err
		}
		return do()
	})
}

// One reads the only row of a query. It reports false where there is none.
func One(ctx context.Context, db Querier, into []any, query string, args ...any) (found bool, err error) {
	err = Each(ctx, db, into, func() error { found = true; return nil }, query, args...)
	return found && err == nil, err
}

// Pairs returns the rows of a query, of two columns, as a map.
func Pairs[K comparable, V any](ctx context.Context, db Querier, query string, args ...any) (map[K]V, error) {
	pairs := map[K]V{}
	err := eachOf(ctx, db, query, args, func(rows *sql.Rows) error {
		var key K
		var value V
		err := rows.Scan(&key, &value)
		pairs[key] = value
		return err
	})
	return pairs, err
}

func eachOf(ctx context.Context, db Querier, query string, args []any, read func(*sql.Rows) error) error {
	if statements, ok := db.(*Statements); ok {
		return statements.run(ctx, func(ctx context.Context) error { return eachOf(ctx, statements.Pool, query, args, read) })
	}
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // what may go wrong is in Err
	for rows.Next() {
		if err := read(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// Itself is the conversion of a row that needs none.
func Itself[T any](row *T) (T, error) { return *row, nil }

// scan reads a column.
type scan func(column any) error

// Scan implements sql.Scanner.
func (s scan) Scan(column any) error { return s(column) }

// OrZero reads a column into v, null as the zero value.
func OrZero[T any](v *T) sql.Scanner {
	return scan(func(column any) error {
		var read sql.Null[T]
		err := read.Scan(column)
		*v = read.V
		return err
	})
}

// UTC reads a time, null as the zero time.
func UTC(at *time.Time) sql.Scanner {
	return scan(func(column any) error {
		err := OrZero(at).Scan(column)
		*at = at.UTC()
		return err
	})
}

// Count reads a whole number of units, such as milliseconds, null as none.
func Count(d *time.Duration, unit time.Duration) sql.Scanner {
	return scan(func(column any) error {
		var n int64
		err := OrZero(&n).Scan(column)
		*d = time.Duration(n) * unit
		return err
	})
}
