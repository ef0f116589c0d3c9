package store

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
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

// many returns the rows of the first parameters, one array for each column, as arrays makes them.
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
	arrays := make([]any, len(rows[0]))
	for column := range arrays {
		text := []byte{'{'}
		for i, row := range rows {
			if i > 0 {
				text = append(text, ',')
			}
			text = appendElement(text, row[column])
		}
		arrays[column] = string(append(text, '}'))
	}
	return arrays
}

// orNull returns null in place of the zero value.
func orNull[T comparable](v T) any {
	if v == *new(T) {
		return nil
	}
	return v
}

// appendElement adds a value to the text of an array. Those of a column have one type.
func appendElement(text []byte, value any) []byte {
	switch v := value.(type) {
	case nil:
		return append(text, "null"...)
	case int64:
		return strconv.AppendInt(text, v, 10)
	case bool:
		return strconv.AppendBool(text, v)
	case uuid.UUID: // Postgres reads ids without hyphens, too
		return hex.AppendEncode(text, v[:])
	case *time.Time:
		if v == nil {
			return append(text, "null"...)
		}
		return v.AppendFormat(text, time.RFC3339Nano)
	case string:
		text = append(text, '"')
		for i := range len(v) {
			if v[i] == '"' || v[i] == '\\' {
				text = append(text, '\\')
			}
			text = append(text, v[i])
		}
		return append(text, '"')
	}
	panic(fmt.Sprintf("store: %T in an array", value))
}
