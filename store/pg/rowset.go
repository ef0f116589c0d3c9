package pg

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/lib/pq"
)

// RowSet describes named rows that are passed as parameters of a statement: one row as a parameter
// for each column, or any number as an array for each column. Postgres would take longer to read
// them as JSON. The column "place" numbers the rows.
type RowSet struct {
	Name    string
	Columns []string // and their types: "id uuid"
}

// One returns a common table expression of one row, from the first parameters, one for each column.
func (g RowSet) One() string {
	values := make([]string, len(g.Columns))
	for i, column := range g.Columns {
		name, kind, _ := strings.Cut(column, " ")
		values[i] = fmt.Sprintf("$%d::%s as %s", i+1, kind, name)
	}
	return g.Name + ` as not materialized (select ` + strings.Join(values, ", ") + `, 1::bigint as place)`
}

// Many returns a common table expression of rows, from the first parameters, one array for each
// column.
func (g RowSet) Many() string {
	names, lists := make([]string, len(g.Columns)), make([]string, len(g.Columns))
	for i, column := range g.Columns {
		name, kind, _ := strings.Cut(column, " ")
		names[i], lists[i] = name, fmt.Sprintf("$%d::%s[]", i+1, kind)
	}
	return g.Name + ` as (select * from unnest(` + strings.Join(lists, ", ") + `) with ordinality as ` + g.Name + ` (` +
		strings.Join(names, ", ") + `, place))`
}

// Columns are columns of a table that a statement writes. Rows for them, as [JSON], are read
// with their types by json_populate_recordset(null::table, $1).
type Columns []string

func (c Columns) String() string { return strings.Join(c, ", ") }

// Of returns the columns of a table with a name, such as excluded.
func (c Columns) Of(table string) string { return table + "." + strings.Join(c, ", "+table+".") }

// Parameters returns the parameters for One or Many: the values of a single row, or an array for
// each column. It replaces invalid UTF-8, in rows, too: Postgres would refuse the whole statement.
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

// Arrays returns an array for each column. There must be at least one row.
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
