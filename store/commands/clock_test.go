package commands

import (
	"errors"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/store/history"
	"motorpool/store/idempotency"
	"motorpool/store/pg"
	"motorpool/store/rentals"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// shiftPostgres returns the address of a database whose clock differs from this process's by a
// duration: a schema that is searched before Postgres's own has its own now() and
// clock_timestamp().
func shiftPostgres(t *testing.T, address string, by time.Duration) string {
	t.Helper()
	for _, statement := range []string{
		`create schema shifted`, `grant usage on schema shifted to public`,
		fmt.Sprintf(`create function shifted.now() returns timestamptz language sql stable as 'select pg_catalog.now() + %s'`, quoted(by)),
		fmt.Sprintf(`create function shifted.clock_timestamp() returns timestamptz language sql volatile as
			'select pg_catalog.clock_timestamp() + %s'`, quoted(by)),
	} {
		storetest.Exec(t, open(t, address).Pool, statement)
	}
	u, err := url.Parse(address)
	require.NoError(t, err)
	query := u.Query()
	query.Set("search_path", "shifted,pg_catalog,public")
	u.RawQuery = query.Encode()
	return u.String()
}

func quoted(d time.Duration) string { return fmt.Sprintf("interval ''%d seconds''", int(d.Seconds())) }

const unknownUnitsTable = `strangers`

// An instance whose clock is 40 days ahead of Postgres's must remove nothing that is not outdated
// by Postgres's clock.
func TestHousekeeping_InstanceClockAheadRemovesNothing(t *testing.T) {
	p := open(t, shiftPostgres(t, storetest.NewDatabase(t), -40*24*time.Hour))
	for id := range telematics.VehicleID(3) {
		storetest.AddVehicle(t, p.DB, id+1)
	}
	exec := func(statement string, args ...any) {
		t.Helper()
		storetest.Exec(t, p.Pool, statement, args...)
	}
	vehicle := telematics.VehicleID(1)
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Key = brokertest.NewKey()
	p.mustClaim(t, c)
	exec(`update idempotency_keys set made_at = now()`)
	exec(`insert into ` + unknownUnitsTable + ` (serial, first_seen, last_seen, messages) values ('unit-9', now(), now(), 1)`)
	exec(
		`insert into processor_notices (id, type, object, kind, live, received_at, due_at)
			values ('n', 't', 'o', 'payment', false, now(), null)`,
	)
	exec(`insert into stations (id, agency_id, name, address, latitude, longitude) values (1, 1, 'Station', 'Street 1', 48, 11)`)
	exec(`insert into clients (agency_id, subject) values (1, 'anna')`)
	exec(`insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at, end_at,
			currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
		select 'BK-1', 'upcoming', 1, id, 2, 1, 1, now() + interval '1 hour', now() + interval '2 hours', 'EUR', 1500, 100000, 100,
			1500, 150, 0, now()
		from clients`) // later than Postgres's clock, earlier than this process's
	exec(`update vehicles set status = 'booked' where id = 2`)
	bulk := uuid.New()
	exec(
		`insert into bulks (id, action, vehicle_ids, actor_subject, actor_role, requested_at) values ($1, 'lock', '{3}', 'admin',
			'admin', now())`,
		bulk,
	)

	if made, found, err := p.FindByKey(t.Context(), *c.Key); err != nil || !found || made.Command.ID != c.ID {
		t.Errorf("FindByKey = %+v, %v, %v; want the first command", made, found, err)
	}
	for _, what := range []struct {
		name, rows string
		forget     func() (bool, error)
	}{
		{"idempotency key", `select count(*) from idempotency_keys`,
			func() (bool, error) { return idempotency.Forget(t.Context(), p.DB, 10) }},
		{"unknown unit", `select count(*) from ` + unknownUnitsTable,
			func() (bool, error) { return vehicles.ForgetUnknownUnits(t.Context(), p.DB, 10) }},
		{"notice", `select count(*) from processor_notices`, func() (bool, error) { return rentals.ForgetNotices(t.Context(), p.DB, 10) }},
		{"booked vehicle", `select count(*) from vehicles where status = 'booked'`,
			func() (bool, error) { _, err := rentals.Lapse(t.Context(), p.DB, 10); return false, err }},
	} {
		_, err := what.forget()
		require.NoError(t, err)
		var left int
		if err := p.Pool.Get(&left, what.rows); err != nil || left != 1 {
			t.Errorf("%s: %d rows left, want 1 (%v)", what.name, left, err)
		}
	}
	order, err := p.Bulk(t.Context(), bulk)
	if err != nil || len(order.Items) != 1 || order.Items[0].Refusal != nil {
		t.Errorf("Bulk = %+v, %v; want no refusal, since the order is new", order, err)
	}
}

// An instance whose clock is behind Postgres's must still remove what is outdated by Postgres's
// clock.
func TestHousekeeping_InstanceClockBehindRemovesWhatIsOutdated(t *testing.T) {
	p := open(t, shiftPostgres(t, storetest.NewDatabase(t), 40*24*time.Hour))
	storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(1, telematics.Lock)
	c.Key = brokertest.NewKey()
	p.mustClaim(t, c)
	if _, found, err := p.FindByKey(t.Context(), *c.Key); err != nil || found {
		t.Errorf("FindByKey = %v, %v; want none, since the key is outdated by Postgres's clock", found, err)
	}
}

// Postgres's clock leaps ahead by 25 hours, with those of all instances: what is an hour old seems
// to be outdated. Nothing is removed until the clock has been steady for six hours.
func TestHousekeeping_ClockThatHasLeaptRemovesNothing(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	storetest.AddVehicle(t, p.DB, 2)
	exec := func(statement string) {
		t.Helper()
		storetest.Exec(t, p.Pool, statement)
	}
	observe := func(leaps bool) {
		t.Helper()
		if leap, err := p.ObserveClock(t.Context()); err != nil || leaps != (leap != 0) {
			t.Fatalf("ObserveClock = %v, %v; want a leap: %t", leap, err, leaps)
		}
	}
	observe(false)
	c := brokertest.NewCommand(1, telematics.Lock)
	c.Key = brokertest.NewKey()
	p.mustClaim(t, c)
	recorder := history.NewRecorder(history.Config{DB: p.DB, Days: 7})
	_, _, err := recorder.Keep(t.Context())
	require.NoError(t, err)
	exec(`update idempotency_keys set made_at = made_at - interval '25 hours'`)
	exec(`update observed_clock set observed_at = observed_at - interval '25 hours'`)
	observe(true)
	observe(false)

	if _, found, err := p.FindByKey(t.Context(), *c.Key); err != nil || !found {
		t.Errorf("FindByKey = %v, %v; want the key in force", found, err)
	}
	if _, err := idempotency.Forget(t.Context(), p.DB, 10); !errors.Is(err, pg.ErrClockLeapt) {
		t.Errorf("Forget: %v, want %v", err, pg.ErrClockLeapt)
	}
	if _, err := rentals.EndMaintenance(t.Context(), p.DB, 10); !errors.Is(err, pg.ErrClockLeapt) {
		t.Errorf("EndMaintenance: %v, want %v", err, pg.ErrClockLeapt)
	}
	if _, err := Prune(t.Context(), p.owner(), MinMonths, false); !errors.Is(err, pg.ErrClockLeapt) {
		t.Errorf("Prune: %v, want %v", err, pg.ErrClockLeapt)
	}
	fewer := history.NewRecorder(history.Config{DB: p.DB, Days: 3})
	if _, dropped, err := fewer.Keep(t.Context()); err != nil || dropped != 0 {
		t.Errorf("Keep dropped %d days, %v; want none", dropped, err)
	}

	exec(`update observed_clock set steady_since = now() - interval '6 hours'`)
	if _, found, err := p.FindByKey(t.Context(), *c.Key); err != nil || found {
		t.Errorf("after six hours FindByKey = %v, %v; want the key expired", found, err)
	}
	if _, err := idempotency.Forget(t.Context(), p.DB, 10); err != nil {
		t.Errorf("after six hours Forget: %v", err)
	}
	if _, dropped, err := fewer.Keep(t.Context()); err != nil || dropped != 4 {
		t.Errorf("after six hours Keep dropped %d days, %v; want 4", dropped, err)
	}
	// The clock goes back by 25 hours: keys that were made a moment ago seem to be of tomorrow.
	exec(`update observed_clock set observed_at = observed_at + interval '25 hours'`)
	observe(true)
	c = brokertest.NewCommand(2, telematics.Lock)
	c.Key = brokertest.NewKey()
	p.mustClaim(t, c)
	exec(`update idempotency_keys set made_at = now() + interval '25 hours'`)
	if _, err := idempotency.Forget(t.Context(), p.DB, 10); !errors.Is(err, pg.ErrClockLeapt) {
		t.Errorf("Forget: %v, want %v", err, pg.ErrClockLeapt)
	}
	var moved bool
	if err := p.Pool.Get(&moved,
		`select exists (select from idempotency_keys where made_at < now() + interval '24 hours')`); err != nil || moved {
		t.Errorf("a key's time was changed: %v, %v; want it as it was made", moved, err)
	}
}

// A key that was made by a clock far ahead does not stay for decades.
func TestForget_KeyFromTheFutureIsKeptForADay(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(1, telematics.Lock)
	c.Key = brokertest.NewKey()
	p.mustClaim(t, c)
	storetest.Exec(t, p.Pool, `update idempotency_keys set made_at = made_at + interval '74 years'`)
	_, err := idempotency.Forget(t.Context(), p.DB, 10)
	require.NoError(t, err)
	var made bool
	if err := p.Pool.Get(&made, `select made_at <= now() from idempotency_keys`); err != nil || !made {
		t.Errorf("the key is made in the future: %v, %v; want it made now", !made, err)
	}
}

// For two minutes after all clocks have gone back, the unit may still answer the command that was
// sent before.
func TestAwaitingAnswer_AfterAClockHasGoneBack(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(1, telematics.Lock)
	c.Lane, c.BestEffort.AnswerBy = telematics.UnitLane, time.Now().Add(25*time.Hour)
	p.mustClaim(t, c)
	_, _, err := p.Settle(t.Context(), delivery.Settlement{Command: c.ID, State: telematics.Unknown, At: time.Now()})
	require.NoError(t, err)
	for _, clock := range []struct {
		observed string
		awaits   bool
	}{
		{`observed_at = now() + interval '25 hours'`, true}, // nothing was observed since
		{`observed_at = now(), steady_since = now()`, true},
		{`observed_at = now(), steady_since = now() - interval '3 minutes'`, false},
	} {
		storetest.Exec(t, p.Pool, `update observed_clock set `+clock.observed)
		if _, awaits, err := p.AwaitingAnswer(t.Context(), c.Unit); err != nil || awaits != clock.awaits {
			t.Errorf("%s: awaits an answer: %t, %v; want %t", clock.observed, awaits, err, clock.awaits)
		}
	}
}
