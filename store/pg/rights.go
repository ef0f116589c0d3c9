package pg

import (
	"context"
	"fmt"
	"strings"

	"motorpool/store/unavailable"
)

// Rights are what an instance must be allowed to do, by table. A role that does not own
// the tables is granted them one by one; a migration that adds a table adds a line.
var Rights = []struct{ Table, Privileges string }{
	{"activity", "select insert"},
	{"activity_seals", "select insert"},
	{"addresses", "select insert delete"},
	{"agencies", "select"},
	{"agency_keys", "select insert update"},
	{"booking_numbers", "select insert update"},
	{"bookings", "select insert update"},
	{"bulk_refusals", "select insert"},
	{"bulks", "select insert"},
	{"charges", "select insert update"},
	{"clients", "select insert update"},
	{"commands", "select insert update"},
	{"geocoder_turn", "select update"},
	{"halts", "select insert update delete"},
	{"idempotency_keys", "select insert update delete"}, // to update: to lock them
	{"payment_methods", "select insert update delete"},
	{"processor_notices", "select insert update delete"},
	{"settings", "select insert"},
	{"snapshots", "select insert update"},
	{"stations", "select"},
	{`strangers`, "select insert update delete"},
	{"units", "select update"},
	{"unrecorded_answers", "select insert"},
	{"used_signatures", "select insert update delete"}, // to update: to lock them
	// Updates lock them, and store whether they are booked.
	{"vehicles", "select update"},
}

// Allowed says which rights are missing, once the schema is there; nil: none.
func (p *DB) Allowed(ctx context.Context) error {
	var wanted, granted []string
	for _, r := range Rights {
		for privilege := range strings.FieldsSeq(r.Privileges) {
			wanted = append(wanted, privilege+" on "+r.Table)
			granted = append(granted, fmt.Sprintf("has_table_privilege('%s', '%s')", r.Table, privilege))
		}
	}
	var missing string
	err := p.Pool.GetContext(ctx, &missing, `
		select coalesce(string_agg(wanted, ', '), '')
		from unnest(array['`+strings.Join(wanted, "','")+`'], array[`+strings.Join(granted, ",")+`]) as r (wanted, granted)
		where not granted`)
	if err == nil && missing != "" {
		err = fmt.Errorf("the database role lacks %s", missing)
	}
	return unavailable.Wrap("ask for the rights of the database role", err)
}
