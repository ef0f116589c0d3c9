package commands

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
)

// The values of a statement must be the same for Postgres whether they are passed as one row or as
// one of many.
func TestRowSet_OneRowEqualsOneOfMany(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	row := pg.RowSet{
		Name: "row",
		Columns: []string{
			"id uuid", "number bigint", "small integer", "flag boolean", "text text", "json json", "jsonb jsonb",
			"at timestamptz",
		},
	}
	at := time.Date(2026, 11, 22, 10, 0, 0, 123456000, time.UTC)
	rows := [][]any{
		{
			uuid.MustParse("0195d2c4-5e6f-7a8b-9c0d-1e2f3a4b5c6d"), int64(-1 << 62), int64(7), true, `{a, "b" \c} null`,
			`{"a":["\\ \"x\"", null]}`, `{"b": 1}`, &at,
		},
		{uuid.Nil, int64(0), int64(0), false, "", `""`, `[]`, new(at.Add(time.Hour))},
		{nil, nil, nil, nil, nil, nil, nil, (*time.Time)(nil)},
		{(*uuid.UUID)(nil), (*int64)(nil), nil, nil, nil, nil, nil, nil},
		{new(uuid.Max), new(int64(7)), nil, nil, nil, nil, nil, nil},
		{uuid.Nil, int64(1), int64(-1), false, "null", "null", "null", &at},
		{uuid.Nil, int64(1), int64(-1), false, "no\xff UTF-8", "1", "2", &at},
		{uuid.Nil, int64(1), int64(-1), false, "zwölf\n🚗\t'", "1", "2", &at},
	}
	const asText = ` select row(id, number, small, flag, text, jsonb, at)::text || coalesce(json::text, 'no json') as text
		from row order by place`
	type line struct {
		Text string `db:"text"`
	}
	var together []line
	require.NoError(t, p.Pool.SelectContext(t.Context(), &together, `with `+row.Many()+asText, pg.Parameters(rows)...))
	for i, values := range rows {
		var alone []line
		require.NoError(t, p.Pool.SelectContext(t.Context(), &alone, `with `+row.One()+asText, pg.Parameters([][]any{values})...))
		if len(together) != len(rows) || len(alone) != 1 || alone[0] != together[i] {
			t.Errorf("row %d is %q as one row, %q as one of %d", i, alone, together[i], len(together))
		}
	}
}
