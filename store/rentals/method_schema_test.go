package rentals

import (
	"sync"
	"testing"

	"motorpool/internal/require"
	"motorpool/store/storetest"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

func TestSchema_KeepsOneDefault(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	c, other := newCardholder(t, p), newCardholder(t, p)
	first, second, theirs := c.add(false), c.add(false), other.add(false)
	empty := newCardholder(t, p)
	const insert = `insert into payment_methods (client_id, token, brand, last_four, exp_month, exp_year, created_at)
		values ($1, gen_random_uuid()::text, 'visa', '4242', 1, 2030, now())`
	for name, violation := range map[string]struct {
		constraint string
		sql        string
		args       []any
	}{
		"no default with methods": {"clients_default_is_there", `update clients set default_payment_method_id = null
			where id = $1`, []any{c.client.ID}},
		"method without a default": {"clients_default_is_there", insert, []any{empty.client.ID}},
		"another client's method as the default": {"clients_default_is_own", `update clients set default_payment_method_id = $2
			where id = $1`, []any{c.client.ID, theirs.ID}},
		"unknown method as the default": {"clients_default_is_own", `update clients set default_payment_method_id = 999999
			where id = $1`, []any{c.client.ID}},
		"removal of the default": {
			"clients_default_is_own", `delete from payment_methods where id = $1`, []any{first.ID},
		},
		"removal of all": {
			"clients_default_is_own", `delete from payment_methods where client_id = $1`, []any{c.client.ID},
		},
		"default moved to another client": {
			"clients_default_is_own", `update payment_methods set client_id = $2 where id = $1`, []any{first.ID, other.client.ID},
		},
		"method moved to a client without a default": {
			"clients_default_is_there", `update payment_methods set client_id = $2 where id = $1`, []any{second.ID, empty.client.ID},
		},
		"removal of the client": {
			"payment_methods_client_exists", `delete from clients where id = $1`, []any{other.client.ID},
		},
	} {
		err := p.owner().Within(t.Context(), func(tx *sqlx.Tx) error {
			_, err := tx.Exec(violation.sql, violation.args...)
			return err
		})
		if refusal := pq.As(err); refusal == nil || refusal.Constraint != violation.constraint {
			t.Errorf("%s: %v, want a violation of %s", name, err, violation.constraint)
		}
	}
	for _, holder := range []cardholder{c, other, empty} {
		if wrong, err := oneDefault(p, holder.client.ID); err != nil || wrong != "" {
			t.Errorf("default of the client: %s %v", wrong, err)
		}
	}
}

// Each of two transactions alone sees a client with a default, or without methods; together they
// would leave methods without a default. The schema serialises them in either order.
func TestSchema_SerializesChangesOfOneClientsMethods(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	insert := func(tx *sqlx.Tx, c cardholder) error {
		_, err := tx.Exec(`
			insert into payment_methods (client_id, token, brand, last_four, exp_month, exp_year, created_at)
			values ($1, gen_random_uuid()::text, 'visa', '4242', 1, 2030, now())`, c.client.ID)
		return err
	}
	empty := func(tx *sqlx.Tx, c cardholder) error {
		if _, err := tx.Exec(`update clients set default_payment_method_id = null where id = $1`, c.client.ID); err != nil {
			return err
		}
		_, err := tx.Exec(`delete from payment_methods where client_id = $1 and created_at < now() - interval '1 hour'`, c.client.ID)
		return err
	}
	for name, steps := range map[string][2]func(*sqlx.Tx, cardholder) error{
		"the last method is removed before another is added": {empty, insert},
		"another method is added before the last is removed": {insert, empty},
	} {
		c := newCardholder(t, p)
		m := c.add(false)
		storetest.Exec(t, p.Pool, `update payment_methods set created_at = now() - interval '1 day' where id = $1`, m.ID)
		var txs [2]*sqlx.Tx
		for i := range txs {
			tx := storetest.Begin(t, p.Pool)
			require.NoError(t, steps[i](tx, c))
			txs[i] = tx
		}
		var errs [2]error
		var wg sync.WaitGroup
		for i, tx := range txs {
			wg.Go(func() { errs[i] = tx.Commit() })
		}
		wg.Wait()
		if (errs[0] == nil) == (errs[1] == nil) {
			t.Errorf("%s: errors %v and %v, want exactly one", name, errs[0], errs[1])
		}
		if wrong, err := oneDefault(p, c.client.ID); err != nil || wrong != "" {
			t.Errorf("%s: default of the client: %s %v", name, wrong, err)
		}
	}
}
