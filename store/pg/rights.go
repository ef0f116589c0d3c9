package pg

import (
	"context"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/store/unavailable"
)

// Rights are the privileges that an instance needs, by table; a migration that adds a table adds a
// line. To history (settled commands, the audit log) an instance may only add, through functions of
// the owner where rows move there from another table.
var Rights = []struct{ Table, Privileges string }{
	{"activity", "select insert"},
	{"agencies", "select"},
	{"agency_keys", "select insert update"},
	{"alert_inputs", "select insert update delete"},
	{"alert_rules", "select insert update delete"},
	{"alerts", "select insert update delete"},
	{"areas", "select insert update delete"},
	{"booking_numbers", "select insert update"},
	{"bookings", "select insert update"},
	{"bulk_refusals", "select insert"},
	{"bulks", "select insert"},
	{"charges", "select insert update"},
	{"clients", "select insert update"},
	{"commands", "select insert update"},
	{"detachments", "select insert update delete"},
	{"halts", "select insert update delete"},
	{"history_pruned", "select"},
	{"idempotency_keys", "select insert update delete"}, // to update: to lock them
	{"instances", "select insert update delete"},
	{"operators", "select update"}, // to set passwords; the owner adds and removes them
	{"payment_methods", "select insert update delete"},
	{"positions", "select insert update"},
	{"processor_notices", "select insert update delete"},
	{"quotes", "select insert update delete"},
	{"rental_rules", "select insert update"},
	{"settings", "select insert"},
	{"settled_commands", "select"},
	{"snapshots", "select insert update"},
	{"stations", "select insert update"},
	{`strangers`, "select insert update delete"},
	{"tariffs", "select insert"},
	{"telemetry", "select insert update"},
	{"transitions", "select insert update"},
	{"unit_clocks", "select insert update delete"},
	{"unit_counts", "select insert update delete"},
	{"units", "select insert update"},
	{"unrecorded_answers", "select insert"},
	{"unrecorded_payments", "select insert delete"},
	{"used_signatures", "select insert update delete"}, // to update: to lock them
	// Updates lock them, and store whether they are booked.
	{"vehicles", "select insert update"},
}

// Grant grants Rights to a role, and revokes its other privileges on these tables: it may neither
// change nor remove history. The database's role must own the tables.
func (p *DB) Grant(ctx context.Context, role string) error {
	to := pq.QuoteIdentifier(role)
	// One at a time: Postgres refuses two that change the rights of one table concurrently.
	statements := []string{`select pg_advisory_xact_lock(hashtextextended('rights', 0))`}
	for _, r := range Rights {
		statements = append(statements, `revoke all on `+r.Table+` from `+to,
			`grant `+strings.Join(strings.Fields(r.Privileges), ", ")+` on `+r.Table+` to `+to)
	}
	statements = append(statements, `grant usage on all sequences in schema public to `+to, `grant select on goose_db_version to `+to,
		`grant execute on function keep_telemetry(integer, integer) to `+to)
	return unavailable.Wrap("grant rights to "+role, p.Within(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, strings.Join(statements, "; "))
		return err
	}))
}

// Allowed returns an error that names the missing rights; nil: none is missing. The schema must
// exist.
func (p *DB) Allowed(ctx context.Context) error {
	var wanted, granted []string
	for _, r := range Rights {
		for privilege := range strings.FieldsSeq(r.Privileges) {
			wanted = append(wanted, privilege+" on "+r.Table)
			granted = append(granted, fmt.Sprintf("has_table_privilege('%s', '%s')", r.Table, privilege))
		}
	}
	var missing string
	err := p.Health.GetContext(ctx, &missing, `
		select coalesce(string_agg(wanted, ', '), '')
		from unnest(array['`+strings.Join(wanted, "','")+`'], array[`+strings.Join(granted, ",")+`]) as r (wanted, granted)
		where not granted`)
	if err == nil && missing != "" {
		err = fmt.Errorf("the database role lacks %s", missing)
	}
	return unavailable.Wrap("ask for the rights of the database role", err)
}
