package vehicles

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// priced returns the stored terms of agencies and rates of vehicles.
func priced(t *testing.T, p *fixture) (map[telematics.AgencyID]rental.Terms, map[telematics.VehicleID]rental.Rate) {
	t.Helper()
	var agencies []struct {
		ID       telematics.AgencyID `db:"id"`
		Currency rental.Currency     `db:"currency"`
		Tax      rental.TaxRate      `db:"tax_ppm"`
		Cutoff   int64               `db:"cutoff"`
		Buffer   int64               `db:"buffer"`
		Grace    int64               `db:"grace"`
		Wait     int64               `db:"wait"`
		FeeLimit rental.Minor        `db:"fee_limit"`
		Rules    []byte              `db:"rules"`
	}
	err := p.Pool.SelectContext(t.Context(), &agencies, `
		select id, currency, tax_ppm, (extract(epoch from cancel_cutoff))::bigint as cutoff, (extract(epoch from buffer))::bigint as buffer,
			(extract(epoch from unlock_grace))::bigint as grace, (extract(epoch
			from payment_wait))::bigint as wait, coalesce(fee_limit, 0) as fee_limit,
			(select rules from rental_rules where agency_id = id) as rules
		from agencies`)
	require.NoError(t, err)
	terms := map[telematics.AgencyID]rental.Terms{}
	for _, a := range agencies {
		rules, err := decodeRules(a.Rules)
		require.NoError(t, err)
		terms[a.ID] = rental.Terms{
			Currency: a.Currency, Tax: a.Tax, CancelCutoff: time.Duration(a.Cutoff) * time.Second,
			Buffer: time.Duration(a.Buffer) * time.Second, UnlockGrace: time.Duration(a.Grace) * time.Second,
			PaymentWait: time.Duration(a.Wait) * time.Second, FeeLimit: a.FeeLimit, Rules: rules,
		}
	}
	var vehicles []struct {
		ID      telematics.VehicleID `db:"id"`
		Hourly  rental.Minor         `db:"hourly_rate"`
		Deposit rental.Minor         `db:"deposit"`
	}
	require.NoError(t, p.Pool.SelectContext(t.Context(), &vehicles, `select id, hourly_rate, deposit from vehicles where hourly_rate is
		not null`))
	rates := map[telematics.VehicleID]rental.Rate{}
	for _, v := range vehicles {
		rates[v.ID] = rental.Rate{Hourly: v.Hourly, Deposit: v.Deposit}
	}
	return terms, rates
}

func TestImport_SetsTermsAndRates(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	check := func(want Imported) {
		t.Helper()
		if got, err := p.Import(t.Context(), file); err != nil || got != want {
			t.Errorf("Import = %+v, %v; want %+v", got, err, want)
		}
		if terms, rates := priced(t, p); !reflect.DeepEqual(terms, file.Terms) || !reflect.DeepEqual(rates, file.Rates) {
			t.Errorf("stored terms %+v and rates %+v, want %+v and %+v", terms, rates, file.Terms, file.Rates)
		}
	}
	check(Imported{Agencies: 2, Tariffs: 1, Rules: 1, Areas: 2, Stations: 5, Vehicles: 12, Units: 12})
	check(Imported{})
	file.Terms[1] = rental.Terms{
		Currency: "JPY", Tax: rental.FullTax, CancelCutoff: rental.MaxLength, Buffer: time.Minute,
		UnlockGrace: time.Minute, PaymentWait: 0, FeeLimit: 50_000, Rules: rental.Rules{ReturnTo: rental.ReturnToStation, StationRadius: 1},
	}
	file.Rates[1], file.Rates[2] = rental.Rate{Hourly: rental.MaxAmount, Deposit: rental.MaxAmount}, rental.Rate{}
	delete(file.Rates, 3)                                           // no longer for rent
	check(Imported{Agencies: 1, Tariffs: 1, Rules: 1, Vehicles: 3}) // its tariff, in yen
	check(Imported{})
	// A code that becomes free can be used by another agency.
	file.Agencies[0].Code, file.Agencies[1].Code = "OLD", "MUC"
	check(Imported{Agencies: 2})

	rules := file.Terms[1].Rules
	file.Terms, file.Rates = map[telematics.AgencyID]rental.Terms{
		1: {Currency: rental.DefaultCurrency, Rules: rules}, 2: {Currency: rental.DefaultCurrency, Rules: rental.DefaultRules},
	}, map[telematics.VehicleID]rental.Rate{}
	check(Imported{Agencies: 2, Tariffs: 1, Vehicles: 11})
	file.Agencies[1].Name, file.Stations[0].Address, file.Vehicles[4].Color = "Spree", "Elsewhere", "pink"
	check(Imported{Agencies: 1, Stations: 1, Vehicles: 1})
	stations, err := p.ListStations(t.Context(), telematics.AgencyQuery{})
	require.NoError(t, err)
	slices.Reverse(stations)
	assert.DeepEqual(t, stations, file.Stations, "stations")
	if got, err := p.Import(t.Context(), FleetFile{}); err != nil || got != (Imported{}) {
		t.Errorf("Import of an empty file = %+v, %v; want no change", got, err)
	}
	file.Terms = nil // an import without terms changes nothing
	if got, err := p.Import(t.Context(), file); err != nil || got != (Imported{}) {
		t.Errorf("Import = %+v, %v; want no change", got, err)
	}
}

// putBooking adds a booking of a vehicle of agency 1 that begins in a number of hours and lasts
// one.
func putBooking(t *testing.T, p *fixture, vehicle, hours int, state string) {
	t.Helper()
	_, err := p.Pool.ExecContext(t.Context(), `
		with client as (
			insert into clients (agency_id, subject) values (1, 'c') on conflict (agency_id, subject) do update
			set subject = excluded.subject returning id)
		insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at, end_at,
			started_at, ended_at, currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
		select $1::text, $2::text, 1, id, $3::bigint, 1, 2, now() + $4 * interval '1 hour', now() + ($4 + 1) * interval '1 hour',
			case when $2 in ('active', 'completed') then now() end, case
			when $2 = 'completed' then now() end, 'EUR', 1500, 190000, 100, 1500, 285, 0, now()
		from client`,
		fmt.Sprintf("BK-%d-%d-%s", vehicle, hours, state), state, vehicle, hours)
	require.NoError(t, err)
}

func vehicleStatuses(t *testing.T, p *fixture) map[telematics.VehicleID]telematics.VehicleStatus {
	t.Helper()
	twins, err := p.Twins(t.Context(), telematics.VehicleQuery{Page: telematics.Page{Limit: 100}})
	require.NoError(t, err)
	is := map[telematics.VehicleID]telematics.VehicleStatus{}
	for _, twin := range twins {
		is[twin.ID] = twin.Status
	}
	return is
}

func TestImport_StatusFollowsFromBookings(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t) // vehicle 6 is in use, vehicle 10 in maintenance
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	putBooking(t, p, 1, 5, "upcoming")
	putBooking(t, p, 2, 0, "active")
	putBooking(t, p, 2, 5, "upcoming")
	putBooking(t, p, 3, 0, "completed")
	putBooking(t, p, 3, 5, "cancelled")
	putBooking(t, p, 4, 5, "upcoming")
	putBooking(t, p, 5, 0, "active")
	putBooking(t, p, 6, 5, "upcoming")
	putBooking(t, p, 10, 5, "upcoming")
	file.Vehicles[3].Status, file.Vehicles[4].Status, file.Vehicles[7].Status = telematics.Maintenance, telematics.Inactive,
		telematics.Booked
	for _, want := range []Imported{{Vehicles: 6}, {}} { // 1, 2, 4, 5, 6, 8
		if got, err := p.Import(t.Context(), file); err != nil || got != want {
			t.Errorf("Import = %+v, %v; want %+v", got, err, want)
		}
		if is, want := vehicleStatuses(t, p), map[telematics.VehicleID]telematics.VehicleStatus{
			1: telematics.Booked, 2: telematics.InUse, 3: telematics.Available, 4: telematics.Maintenance, 5: telematics.Inactive,
			6: telematics.Booked, 7: telematics.Available, 8: telematics.Booked, 9: telematics.Available, 10: telematics.Maintenance,
			11: telematics.Available, 12: telematics.Available,
		}; !reflect.DeepEqual(is, want) {
			t.Errorf("statuses %v, want %v", is, want)
		}
	}
	// Two vehicles are back in service.
	file.Vehicles[3].Status, file.Vehicles[4].Status = telematics.Available, telematics.Available
	_, err = p.Import(t.Context(), file)
	require.NoError(t, err)
	if is := vehicleStatuses(t, p); is[4] != telematics.Booked || is[5] != telematics.InUse {
		t.Errorf("statuses %v, want 4 booked and 5 in use", is)
	}
}

// A booking in an uncommitted transaction is read after its commit.
func TestImport_WaitsForAConcurrentBooking(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	tx := storetest.Begin(t, p.Pool)
	for _, query := range []string{
		`select from vehicles where id = 1 for no key update`,
		`insert into clients (agency_id, subject) values (1, 'c')`,
		`insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at, end_at,
			currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
		select 'BK', 'upcoming', 1, id, 1, 1, 2, now(), now() + interval '1 hour', 'EUR', 1500, 190000, 100, 1500, 285, 0, now()
		from clients`,
		`update vehicles set status = 'booked' where id = 1`,
	} {
		storetest.Exec(t, tx, query)
	}
	imported := make(chan error, 1)
	// The import changes the vehicle, and the agency's row, too, while the booking locks its key.
	file.Agencies[0].Name, file.Vehicles[0].Color = "Isar", "pink"
	go func() {
		_, err := p.Import(context.Background(), file)
		imported <- err
	}()
	storetest.WaitForLock(t, p.DB)
	select {
	case err := <-imported:
		t.Fatalf("the import did not wait for the booking: %v", err)
	default:
	}
	require.NoError(t, tx.Commit())
	require.NoError(t, <-imported)
	assert.Equal(t, vehicleStatuses(t, p)[1], telematics.Booked, "vehicle 1")
}

// A vehicle does not leave its agency while that has bookings of it, however it is asked to.
func TestImport_AVehicleStaysWithItsBookings(t *testing.T) {
	p := withWholeFleet(t)
	change(t, p, `{"stations": [{"id": 2, "agency_id": 1, "name": "Ost", "address": "Orleansplatz 1", "latitude": 48.1, "longitude": 11.6}],
		"vehicles": [{"id": 2, "agency_id": 1, "hourly_rate": null}]}`)
	putBooking(t, p, 2, -4, "cancelled")
	putBooking(t, p, 2, -2, "completed")
	const moved = `{"vehicles": [{"id": 1, "color": "red"}, {"id": 2, "agency_id": 2}]}`
	plan, err := tryPlan(p, t, moved)
	require.NoError(t, err)
	wantsRefused := func(counts string) {
		t.Helper()
		want := "has bookings (" + counts + ") that would stay with its former agency: " +
			"end them, cancel them, or move them to another vehicle first"
		refused(t, p, moved, "vehicles[1].agency_id: the vehicle "+want)
		_, byEdit := edit(t, p, `{"agency_id": 2}`)
		_, byApply := p.Apply(t.Context(), plan, telematics.OperatorAt("eva"))
		for _, err := range []error{byEdit, byApply} {
			var refusal *telematics.Error
			if !errors.As(err, &refusal) || refusal.Code != rental.BookingStateConflict || refusal.Message != "Vehicle 2 "+want+"." {
				t.Errorf("%v, want %s", err, want)
			}
		}
		assert.Equal(t, onRecord(t, p).vehicles[2].AgencyID, 1, "vehicle 2 is of agency")
	}
	putBooking(t, p, 2, 3, "upcoming")
	wantsRefused("0 active, 1 upcoming")
	putBooking(t, p, 2, 0, "active")
	wantsRefused("1 active, 1 upcoming")
	storetest.Exec(t, p.Pool, `update bookings set state = 'cancelled', started_at = null where state in ('upcoming', 'active')`)
	change(t, p, moved)
	if _, err := edit(t, p, `{"agency_id": 1}`); err != nil {
		t.Errorf("back: %v", err)
	}
}

// A booking that is made while the vehicle is asked to leave comes first.
func TestImport_AVehicleStaysWithABookingThatIsMadeMeanwhile(t *testing.T) {
	p := withWholeFleet(t)
	change(t, p, `{"stations": [{"id": 2, "agency_id": 1, "name": "Ost", "address": "Orleansplatz 1", "latitude": 48.1, "longitude": 11.6}],
		"vehicles": [{"id": 2, "agency_id": 1, "hourly_rate": null}]}`)
	const moved = `{"vehicles": [{"id": 2, "agency_id": 2}]}`
	plan, err := tryPlan(p, t, moved)
	require.NoError(t, err)
	for name, move := range map[string]func() error{
		"edit":   func() error { _, err := edit(t, p, `{"agency_id": 2}`); return err },
		"import": func() error { _, err := p.Apply(context.Background(), plan, telematics.OperatorAt("eva")); return err },
	} {
		t.Run(name, func(t *testing.T) {
			books := storetest.Begin(t, p.Pool)
			books.MustExec(`select from vehicles where id = 2 for no key update`)
			asked := make(chan error, 1)
			go func() { asked <- move() }()
			storetest.WaitForLock(t, p.DB)
			putBooking(t, p, 2, 3, "upcoming")
			require.NoError(t, books.Commit())
			var refusal *telematics.Error
			if err := <-asked; !errors.As(err, &refusal) || refusal.Code != rental.BookingStateConflict {
				t.Errorf("%v, want %s", err, rental.BookingStateConflict)
			}
			storetest.Exec(t, p.Pool, `delete from bookings`)
		})
	}
}

func TestImport_BestEffortUnlockIsTheAgencys(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	file := demoFleet(t)
	allowed := func(id telematics.VehicleID) bool {
		t.Helper()
		twin, err := p.Twin(t.Context(), id)
		require.NoError(t, err)
		return twin.BestEffortUnlock
	}
	vehicle := file.Vehicles[0]
	for _, allow := range []bool{false, true, true, false} {
		for i := range file.Agencies {
			file.Agencies[i].BestEffortUnlock = allow && file.Agencies[i].ID == vehicle.AgencyID
		}
		_, err := p.Import(t.Context(), file)
		require.NoError(t, err)
		for _, v := range file.Vehicles {
			if got, want := allowed(v.ID), allow && v.AgencyID == vehicle.AgencyID; got != want {
				t.Errorf("vehicle %d of agency %d: best-effort unlock allowed %t, want %t", v.ID, v.AgencyID, got, want)
			}
		}
	}
}
