package pg

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lib/pq"
)

// RowSet is the named rows that are the parameters of a statement: one row as a parameter for each
// column, or any number as an array for each column. As JSON they would take Postgres longer to
// read. The column "place" numbers them.
type RowSet struct {
	Name    string
	Columns []string // and their types: "id uuid"
}

// One returns the row of the first parameters, one for each column.
func (g RowSet) One() string {
	values := make([]string, len(g.Columns))
	for i, column := range g.Columns {
		name, kind, _ := strings.Cut(column, " ")
		values[i] = fmt.Sprintf("$%d::%s as %s", i+1, kind, name)
	}
	return g.Name + ` as not materialized (select ` + strings.Join(values, ", ") + `, 1::bigint as place)`
}

// Many returns the rows of the first parameters, one array for each column.
func (g RowSet) Many() string {
	names, lists := make([]string, len(g.Columns)), make([]string, len(g.Columns))
	for i, column := range g.Columns {
		name, kind, _ := strings.Cut(column, " ")
		names[i], lists[i] = name, fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	return g.Name + ` as (select * from unnest(` + strings.Join(lists, ", ") + `) with ordinality as ` + g.Name + ` (` + strings.Join(names, ", ") + `, place))`
}

// Parameters returns those of a statement: of one row its values, of many an array for each column.
// Invalid UTF-8 is replaced: Postgres would refuse it, and with it all rows.
func Parameters(rows [][]any) []any {
	for _, row := range rows {
		for i, value := range row {
			if text, ok := value.(string); ok && !utf8.ValidString(text) {
				row[i] = strings.ToValidUTF8(text, "\uFFFD")
			}
		}
	}
	if len(rows) == 1 {
		return rows[0]
	}
	return Arrays(rows)
}

// Arrays returns an array for each column of rows, of which there is at least one.
func Arrays(rows [][]any) []any {
	columns := make([]any, len(rows[0]))
	for column := range columns {
		values := make([]any, len(rows))
		for i, row := range rows {
			values[i] = row[column]
		}
		columns[column] = pq.Array(values)
	}
	return columns
}
