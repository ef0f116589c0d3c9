package commands

import (
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// asRole opens the record with a new role that has the rights of the grants.
func asRole(t *testing.T, address, name string, grants ...string) *instance {
	t.Helper()
	owner := openAsOwner(t, address)
	for _, statement := range append([]string{`create role ` + name + ` login password 'secret'`}, grants...) {
		storetest.Exec(t, owner.Pool, statement)
	}
	t.Cleanup(func() {
		if _, err := owner.Pool.Exec(`drop owned by ` + name + `; drop role ` + name); err != nil {
			t.Error(err)
		}
	})
	of, err := url.Parse(address)
	require.NoError(t, err)
	of.User = url.UserPassword(name, "secret")
	return openAsOwner(t, of.String())
}

// The service's role has no rights on tables that a migration adds.
func TestAllowed_NamesTheMissingRights(t *testing.T) {
	address := storetest.NewDatabase(t)
	p := asRole(
		t, address, "before_keys", `grant select, insert, update on all tables in schema public to before_keys`,
		`grant usage on all sequences in schema public to before_keys`,
		`revoke all on idempotency_keys, halts from before_keys`,
		`grant delete on addresses, payment_methods, processor_notices to before_keys`,
	)
	err := p.Allowed(t.Context())
	if err == nil || !strings.HasSuffix(err.Error(), "lacks delete on alert_inputs, delete on alert_rules, "+
		"delete on alerts, delete on areas, delete on detachments, "+
		"select on halts, insert on halts, update on halts, delete on halts, "+
		"select on idempotency_keys, insert on idempotency_keys, update on idempotency_keys, delete on idempotency_keys, "+
		"delete on instances, delete on quotes, delete on "+unknownUnitsTable+", delete on unit_clocks, delete on unit_counts, "+
		"delete on unrecorded_payments, delete on used_signatures") {
		t.Errorf("Allowed = %v, want an error with the missing rights", err)
	}
}

// What a test's transaction does afterwards is done with the rights of the service.
func TestExec_ReturnsToTheRightsOfTheConnection(t *testing.T) {
	tx := storetest.Begin(t, open(t, storetest.NewDatabase(t)).Pool)
	storetest.Exec(t, tx, `update agencies set name = code`)
	if _, err := tx.Exec(`update agencies set name = code`); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("a later statement: %v, want it denied", err)
	}
}

// The rights that Allowed checks suffice for a command, as for all that these tests do, and for no
// change of history.
func TestRights_ARoleWithItsRightsCarriesACommand(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	// What an earlier version has granted is taken back.
	storetest.Exec(t, p.Pool, `grant all on all tables in schema public to `+storetest.Service)
	var granting sync.WaitGroup
	for range 4 { // as instances do that start concurrently
		granting.Go(func() {
			assert.NoError(t, p.owner().Grant(t.Context(), storetest.Service))
		})
	}
	granting.Wait()
	assert.NoError(t, p.Allowed(t.Context()))
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	settled := settleAs(t, p, madeAt(vehicle, time.Now().AddDate(0, 0, -40)), telematics.Unknown)
	moveSettled(t, p)
	wantAt(t, p, settled.ID, partitionOf(settled))
	if _, ok, err := p.Settle(t.Context(),
		delivery.Settlement{Command: settled.ID, Unit: unit, State: telematics.Succeeded, At: time.Now()}); err != nil || !ok {
		t.Errorf("a late answer to a moved command: %v, %v", ok, err)
	}
	moveSettled(t, p)
	wantAt(t, p, settled.ID, partitionOf(settled))
	for _, change := range []string{
		`update settled_commands set state = 'rejected'`, `delete from settled_commands`, `truncate settled_commands`,
		`update ` + partitionOf(settled) + ` set state = 'rejected'`, `delete from ` + partitionOf(settled),
		`drop table ` + partitionOf(settled),
		`insert into settled_commands select * from settled_commands`, `delete from commands`, `truncate commands cascade`,
		`update activity set outcome = ''`, `delete from activity`, `truncate activity`,
		`update unrecorded_answers set state = 'failed'`, `delete from unrecorded_answers`,
		`delete from bulks`, `delete from bulk_refusals`, `insert into history_pruned values ('commands', now())`,
	} {
		if _, err := p.Pool.Exec(change); err == nil || !strings.Contains(err.Error(), "permission denied") &&
			!strings.Contains(err.Error(), "must be owner") {
			t.Errorf("%s: %v, want it denied", change, err)
		}
	}
	if _, err := Prune(t.Context(), p.DB, MinMonths, false); err == nil || !strings.Contains(err.Error(), "permission denied") {
		t.Errorf("Prune: %v, want it denied", err)
	}
}
