// Package operators stores the people who sign in to the console with a password.
//
// Where a comment names no error, the error is the database's; unavailable.Is reports whether
// Postgres could not be used.
package operators

import (
	"context"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/operators"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Store stores operators. Changes add an entry to the audit log in the same statement. It is safe
// for concurrent use.
type Store struct{ DB *pg.DB }

const columns = `id, name, role, agency_id, scopes, password, epoch, link_until, created_at`

// fields are where columns go.
func fields(o *operators.Operator) []any {
	return []any{
		&o.ID, &o.Name, &o.Role, pg.OrZero(&o.Agency), (*pq.StringArray)(&o.Scopes), pg.OrZero(&o.Password), &o.Epoch,
		pg.UTC(&o.LinkUntil), pg.UTC(&o.Created),
	}
}

// ByName implements signin.Operators.
func (s Store) ByName(ctx context.Context, name string) (operators.Operator, bool, error) {
	return s.one(ctx, "read operator", `select `+columns+` from operators where name = $1`, name)
}

// OfSession implements signin.Operators: a session ends when its operator is removed, or gets
// another password.
func (s Store) OfSession(ctx context.Context, id, epoch int64) (operators.Operator, bool, error) {
	return s.one(ctx, "read operator of session", `select `+columns+` from operators where id = $1 and epoch = $2`, id, epoch)
}

// ByLink implements signin.Operators.
func (s Store) ByLink(ctx context.Context, digest []byte) (operators.Operator, bool, error) {
	return s.one(ctx, "read operator of link", `select `+columns+` from operators where link = $1 and link_until > now()`, digest)
}

// Any implements signin.Operators.
func (s Store) Any(ctx context.Context) (any bool, err error) {
	err = s.DB.Pool.GetContext(ctx, &any, `select exists (select from operators)`)
	return any, unavailable.Wrap("look for operators", err)
}

// List returns all operators, by name.
func (s Store) List(ctx context.Context) ([]operators.Operator, error) {
	list, err := pg.Read(ctx, s.DB.Pool, fields, pg.Itself, `select `+columns+` from operators order by name`)
	return list, unavailable.Wrap("list operators", err)
}

// Errors of Add.
var (
	ErrExists   = errors.New("there is an operator of this name")
	ErrNoAgency = errors.New("there is no such agency")
)

// Add adds an operator, with a password or with the digest of a link's code.
func (s Store) Add(ctx context.Context, o operators.Operator, link []byte, by telematics.Author) (operators.Operator, error) {
	added, _, err := s.change(ctx, "add operator", telematics.OperatorAdd, by, `
		insert into operators (name, role, agency_id, scopes, password, link, link_until)
		values ($1, $2, $3, $4, $5, $6, now() + make_interval(secs => $7::float8))`,
		o.Name, o.Role, pg.Nullable(int64(o.Agency)), pq.StringArray(append([]string{}, o.Scopes...)),
		pg.Nullable(o.Password), link, linkFor(link),
	)
	if refusal := pq.As(err); refusal != nil {
		switch refusal.Constraint {
		case "operators_name":
			return added, ErrExists
		case "operators_agency_exists":
			return added, ErrNoAgency
		}
	}
	return added, err
}

// linkFor returns the seconds for which a link is good, or null where there is none.
func linkFor(link []byte) *float64 {
	if link == nil {
		return nil
	}
	return pg.Nullable(operators.LinkFor.Seconds())
}

// Reset ends the sessions and the password of an operator, who gets a new password or a link. It
// reports false where there is no such operator.
func (s Store) Reset(ctx context.Context, name, password string, link []byte, by telematics.Author) (operators.Operator, bool, error) {
	return s.change(ctx, "reset password", telematics.OperatorPassword, by, `
		update operators set password = $2, epoch = epoch + 1, link = $3, link_until = now() + make_interval(secs => $4::float8)
		where name = $1`,
		name, pg.Nullable(password), link, linkFor(link))
}

// Remove removes an operator, whose sessions end. It reports false where there is no such operator.
func (s Store) Remove(ctx context.Context, name string, by telematics.Author) (operators.Operator, bool, error) {
	return s.change(ctx, "remove operator", telematics.OperatorRemove, by, `delete from operators where name = $1`, name)
}

// SetPassword implements signin.Operators. Earlier sessions end.
func (s Store) SetPassword(ctx context.Context, digest []byte, password string, by telematics.Author) (operators.Operator, bool, error) {
	return s.change(ctx, "set password", telematics.OperatorPassword, by, `
		update operators set password = $2, epoch = epoch + 1, link = null, link_until = null where link = $1 and link_until > now()`,
		digest, password)
}

// change runs a change of one operator with its audit log entry.
func (s Store) change(
	ctx context.Context, doing, activity string, by telematics.Author, change string, args ...any,
) (operators.Operator, bool, error) {
	var changed operators.Operator
	var found bool
	n := len(args)
	statement := fmt.Sprintf(`with o as (%s returning *), recorded as (
			insert into activity (at, actor_subject, actor_role, actor_agency_id, agency_id, action, outcome, code, request_id, latency_us,
			late, note)
			select clock_timestamp(), $%d::text, $%d::text, nullif($%d::bigint, 0), agency_id, $%d::text, 'executed', '', $%d::uuid, 0,
			false,
				concat_ws(' ', name, role, nullif(array_to_string(scopes, ' '), '')) from o
		)
		select %s from o`, change, n+1, n+2, n+3, n+4, n+5, columns)
	err := s.DB.Within(ctx, func(tx *sqlx.Tx) (err error) {
		args = append(args, by.Subject, by.Role, by.Agency, activity, pg.Nullable(by.RequestID))
		found, err = pg.One(ctx, tx, fields(&changed), statement, args...)
		return err
	})
	return changed, found, unavailable.Wrap(doing, err)
}

func (s Store) one(ctx context.Context, doing, query string, args ...any) (o operators.Operator, found bool, err error) {
	found, err = pg.One(ctx, s.DB.Pool, fields(&o), query, args...)
	return o, found, unavailable.Wrap(doing, err)
}
