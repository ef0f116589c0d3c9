package store

import (
	"fmt"
	"strings"
)

// given is the rows that a statement is given, under a name: any number of them as JSON, or one as parameters, which Postgres
// has read and set up sooner.
type given struct {
	name    string
	columns string // and their types: "id uuid, unit text"
}

// many returns the rows of the first parameter, as recordset makes it.
func (g given) many() string {
	return g.name + ` as (select * from json_to_recordset($1) as ` + g.name + ` (` + g.columns + `))`
}

// one returns the row of the first parameters, one for each column.
func (g given) one() string {
	columns := strings.Split(g.columns, ", ")
	for i, column := range columns {
		name, kind, _ := strings.Cut(column, " ")
		columns[i] = fmt.Sprintf("$%d::%s as %s", i+1, kind, name)
	}
	return g.name + ` as not materialized (select ` + strings.Join(columns, ", ") + `)`
}
