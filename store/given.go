package store

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lib/pq"
)

// given is the rows that a statement is given, under a name: one as parameters, or any number as an array of each column. As JSON they
// would take Postgres longer to read. The column "place" numbers them.
type given struct {
	name    string
	columns []string // and their types: "id uuid"
}

// one returns the row of the first parameters, one for each column.
func (g given) one() string {
	values := make([]string, len(g.columns))
	for i, column := range g.columns {
		name, kind, _ := strings.Cut(column, " ")
		values[i] = fmt.Sprintf("$%d::%s as %s", i+1, kind, name)
	}
	return g.name + ` as not materialized (select ` + strings.Join(values, ", ") + `, 1::bigint as place)`
}

// many returns the rows of the first parameters, one array for each column.
func (g given) many() string {
	names, lists := make([]string, len(g.columns)), make([]string, len(g.columns))
	for i, column := range g.columns {
		name, kind, _ := strings.Cut(column, " ")
		names[i], lists[i] = name, fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	return g.name + ` as (select * from unnest(` + strings.Join(lists, ", ") + `) with ordinality as ` + g.name + ` (` + strings.Join(names, ", ") + `, place))`
}

// parameters returns those of a statement: of one row its values, of many an array for each column. What is no UTF-8 is replaced: Postgres
// would refuse it, and with it all rows.
func parameters(rows [][]any) []any {
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
	return arrays(rows)
}

// arrays returns an array for each column of rows, of which there is at least one.
func arrays(rows [][]any) []any {
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
