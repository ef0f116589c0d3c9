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
		columns[column] = array(rows, func(row []any) any { return row[column] })
	}
	return columns
}

// array returns the text of an array, with a value of each item. For lists of ids pq.Array would make several texts of each.
func array[T any](items []T, value func(T) any) string {
	const usual = 32 // bytes: an id, an instant, a word
	text := append(make([]byte, 0, 2+usual*len(items)), '{')
	for i, item := range items {
		if i > 0 {
			text = append(text, ',')
		}
		text = appendElement(text, value(item))
	}
	return string(append(text, '}'))
}

func idArray(ids []uuid.UUID) string { return array(ids, func(id uuid.UUID) any { return id }) }

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
	case time.Time:
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
	case *int64:
		return appendNullable(text, v)
	case *uuid.UUID:
		return appendNullable(text, v)
	case *time.Time:
		return appendNullable(text, v)
	}
	panic(fmt.Sprintf("store: %T in an array", value))
}

func appendNullable[T any](text []byte, value *T) []byte {
	if value == nil {
		return appendElement(text, nil)
	}
	return appendElement(text, *value)
}
