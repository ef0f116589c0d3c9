package pg_test

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"motorpool/store/pg"
	"motorpool/store/storetest"
)

// A transaction is several statements, and a round trip each is enough.
func TestTransaction_ParsesItsStatementsOnce(t *testing.T) {
	db := storetest.OpenAs(t, pg.Config{URL: storetest.NewDatabase(t), MaxConns: 1})
	const statement = `select id from agencies where id = $1`
	for n := range 3 {
		var there []int64
		if err := db.Within(t.Context(), func(tx *sqlx.Tx) error {
			if _, err := tx.Exec(`insert into agencies (id, code, name) values ($1, 'A', 'A') on conflict do nothing`, n%2+1); err != nil {
				return err
			}
			return tx.Select(&there, statement, 1)
		}); err != nil || len(there) != 1 {
			t.Fatalf("transaction %d: %v, %v", n, there, err)
		}
	}
	var kept struct {
		Kept, Uses int
	}
	if err := db.Pool.Get(&kept, `
		select count(*) as kept, sum(generic_plans + custom_plans) as uses from pg_prepared_statements where statement like '%agencies%'`,
	); err != nil || kept.Kept != 2 || kept.Uses != 6 {
		t.Errorf("the connection has %+v, %v, want 2 statements that were used 6 times", kept, err)
	}
	// A failure ends one transaction, and leaves the statement.
	if err := db.Within(t.Context(), func(tx *sqlx.Tx) error {
		_, err := tx.Exec(`insert into agencies (id, code, name) values ($1, 'A', 'A') on conflict do nothing`, -1)
		return err
	}); err == nil {
		t.Error("a refused row was accepted")
	}
	if err := db.Within(t.Context(), func(tx *sqlx.Tx) error {
		_, err := tx.Exec(`insert into agencies (id, code, name) values ($1, 'A', 'A') on conflict do nothing`, 3)
		return err
	}); err != nil {
		t.Errorf("after a failure: %v", err)
	}
}
