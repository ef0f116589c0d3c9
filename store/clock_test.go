package store

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/telematics"
)

// shiftPostgres returns the address of a database by which its clock differs from that of this process by so much: now() and
// clock_timestamp() are found in a schema before Postgres's own.
func shiftPostgres(t *testing.T, address string, by time.Duration) string {
	t.Helper()
	for _, statement := range []string{
		`create schema shifted`,
		fmt.Sprintf(`create function shifted.now() returns timestamptz language sql stable as 'select pg_catalog.now() + %s'`, quoted(by)),
		fmt.Sprintf(`create function shifted.clock_timestamp() returns timestamptz language sql volatile as 'select pg_catalog.clock_timestamp() + %s'`, quoted(by)),
	} {
		if _, err := open(t, address).Pool.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := u.Query()
	query.Set("search_path", "shifted,pg_catalog,public")
	u.RawQuery = query.Encode()
	return u.String()
}

func quoted(d time.Duration) string { return fmt.Sprintf("interval ''%d seconds''", int(d.Seconds())) }

// An instance whose clock is a day, or a month, ahead of Postgres's must remove nothing that is not outdated by Postgres's own.
func TestHousekeeping_InstanceClockAheadRemovesNothing(t *testing.T) {
	w := newRentalWorld(t)
	const ahead = 40 * 24 * time.Hour
	address := shiftPostgres(t, w.address, -ahead)
	p := open(t, address)
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := p.Pool.Exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	vehicle := telematics.VehicleID(1)
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Key = brokertest.NewKey()
	if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
	exec(`update idempotency_keys set made_at = now()`)
	exec(`insert into strangers (serial, first_seen, last_seen, messages) values ('stranger', now(), now(), 1)`)
	exec(`insert into processor_notices (id, type, object, kind, live, received_at, due_at) values ('n', 't', 'o', 'payment', false, now(), null)`)
	hours := time.Now().Add(-ahead).Sub(noon).Hours()
	w.book(draft(2, hours+1, hours+2)) // in Postgres's future, and in this process's past
	bulk := uuid.New()
	exec(`insert into bulks (id, action, vehicle_ids, actor_subject, actor_role, requested_at) values ($1, 'lock', '{3}', 'admin', 'admin', now())`, bulk)

	if made, found, err := p.Made(t.Context(), *c.Key); err != nil || !found || made.Command.ID != c.ID {
		t.Errorf("Made = %+v, %v, %v; want the first command", made, found, err)
	}
	for _, what := range []struct {
		name, rows string
		forget     func() (bool, error)
	}{
		{"idempotency key", `select count(*) from idempotency_keys`, func() (bool, error) { return p.ForgetKeys(t.Context(), 10) }},
		{"stranger", `select count(*) from strangers`, func() (bool, error) { return p.ForgetUnknownUnits(t.Context(), 10) }},
		{"notice", `select count(*) from processor_notices`, func() (bool, error) { return p.ForgetNotices(t.Context(), 10) }},
		{"booked vehicle", `select count(*) from vehicles where status = 'booked'`, func() (bool, error) { return p.FreeVehicles(t.Context(), 10) }},
	} {
		if _, err := what.forget(); err != nil {
			t.Fatal(err)
		}
		var left int
		if err := p.Pool.Get(&left, what.rows); err != nil || left != 1 {
			t.Errorf("%s: %d left, want 1 (%v)", what.name, left, err)
		}
	}
	order, err := p.Bulk(t.Context(), bulk)
	if err != nil || len(order.Items) != 1 || order.Items[0].Refusal != nil {
		t.Errorf("Bulk = %+v, %v; the order has just begun", order, err)
	}
}

// And one whose clock is behind must still remove what is outdated.
func TestHousekeeping_InstanceClockBehindRemovesWhatIsOutdated(t *testing.T) {
	w := newRentalWorld(t)
	p := open(t, shiftPostgres(t, w.address, 40*24*time.Hour))
	c := brokertest.NewCommand(1, telematics.Lock)
	c.Key = brokertest.NewKey()
	if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
	if _, found, err := p.Made(t.Context(), *c.Key); err != nil || found {
		t.Errorf("Made = %v, %v; the key is outdated by Postgres's clock", found, err)
	}
}
