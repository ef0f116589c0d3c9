package rentals

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// Searches of these tests are around a place, at noon.
var (
	middle = telematics.Position{Latitude: 48.14, Longitude: 11.56}
	nearby = rental.OfferQuery{Agency: 1, Near: middle, HasNear: true, Radius: 5000, Limit: 10, Now: noon}
)

// newOfferWorld is a rental world whose vehicles can be offered: vehicle n is n × 111 m north of
// the middle.
func newOfferWorld(t *testing.T) *rentalWorld {
	t.Helper()
	w := newRentalWorld(t)
	w.exec(`insert into rental_rules (agency_id, rules) values (1, '{"station_radius_m": 1000}')`)
	w.exec(`update units set status = 'online', last_seen = $1, changed_at = $1`, noon)
	for id := telematics.VehicleID(1); id <= 4; id++ {
		w.places(id, middle.Latitude+0.001*float64(id), middle.Longitude)
		w.report(id, `{"telemetry.battery_level_percent": {"v": 80}, "telemetry.remaining_range_km": {"v": 200}}`)
	}
	return w
}

// report adds fields to the snapshot of a vehicle.
func (w *rentalWorld) report(id telematics.VehicleID, fields string) {
	w.t.Helper()
	w.exec(`update snapshots set fields = fields || $2::jsonb where vehicle_id = $1`, id, fields)
}

// offered returns the vehicles that a search offers, in their order.
func (w *rentalWorld) offered(change ...func(*rental.OfferQuery)) []telematics.VehicleID {
	w.t.Helper()
	q := nearby
	for _, c := range change {
		c(&q)
	}
	found, _, err := w.here.FindOffers(w.t.Context(), q)
	require.NoError(w.t, err)
	ids := []telematics.VehicleID{}
	for _, o := range found {
		ids = append(ids, o.Vehicle.ID)
	}
	return ids
}

// offers checks which vehicles a search offers.
func (w *rentalWorld) offers(what string, want []telematics.VehicleID, change ...func(*rental.OfferQuery)) {
	w.t.Helper()
	assert.EqualSlices(w.t, w.offered(change...), want, "%s: vehicles offered", what)
}

func TestFindOffers_NearestFirst(t *testing.T) {
	w := newOfferWorld(t)
	found, next, err := w.here.FindOffers(t.Context(), nearby)
	if err != nil || len(found) != 4 || next != (rental.OfferMark{}) {
		t.Fatalf("%d offers, next %v, %v; want 4 and no more", len(found), next, err)
	}
	for i, o := range found {
		if o.Vehicle.ID != telematics.VehicleID(i+1) || math.Abs(float64(o.Metres)-111.2*float64(i+1)) > 1 {
			t.Errorf("offer %d is vehicle %d in %d m", i, o.Vehicle.ID, o.Metres)
		}
	}
	first := found[0]
	if *first.Energy != 80 || *first.Range != 200 || first.Vehicle.Model != "Zoe" || first.Station == nil || first.Station.ID != 1 {
		t.Errorf("offer %+v at station %v", first, first.Station)
	}
	// 15 minutes, the shortest time, at 15 an hour with 10 % tax.
	if p := first.Booking.Price; p.Subtotal != 375 || p.TaxDue != 38 || p.Deposit != 20_000 || first.Booking.Start != noon {
		t.Errorf("booking %+v", first.Booking)
	}
	w.offers("within 250 m", []telematics.VehicleID{1, 2}, func(q *rental.OfferQuery) { q.Radius = 250 })
	w.offers("for another agency", []telematics.VehicleID{}, func(q *rental.OfferQuery) { q.Agency = 2 })
	w.offers("for an unknown agency", []telematics.VehicleID{}, func(q *rental.OfferQuery) { q.Agency = 3 })
}

func TestFindOffers_PagesFollowEachOther(t *testing.T) {
	w := newOfferWorld(t)
	w.places(2, middle.Latitude+0.001, middle.Longitude) // as far as vehicle 1
	w.places(4, middle.Latitude+0.03, middle.Longitude)  // beyond the first two searches
	var all []telematics.VehicleID
	q := nearby
	for q.Limit = 1; ; {
		found, _, err := w.here.FindOffers(t.Context(), q)
		require.NoError(t, err)
		if len(found) == 0 {
			break
		}
		all, q.After = append(all, found[0].Vehicle.ID), found[0].Mark()
	}
	assert.EqualSlices(t, all, []telematics.VehicleID{1, 2, 3, 4}, "vehicles of the pages")
}

func TestFindOffers_LeavesOutWhatCannotBeRented(t *testing.T) {
	w := newOfferWorld(t)
	w.exec(`update agencies set best_effort_unlock = false`)
	sql := func(statement string) func(telematics.VehicleID) {
		return func(id telematics.VehicleID) { w.exec(statement, id) }
	}
	reports := func(fields string) func(telematics.VehicleID) {
		return func(id telematics.VehicleID) { w.report(id, fields) }
	}
	without := map[string]func(telematics.VehicleID){
		"offline":              sql(`update units set status = 'offline', changed_at = '2026-03-04 12:00Z' where vehicle_id = $1`),
		"silent for long":      sql(`update units set last_seen = '2026-03-04 11:00Z' where vehicle_id = $1`),
		"without a unit":       sql(`update units set vehicle_id = null where vehicle_id = $1`),
		"in maintenance":       sql(`update vehicles set status = 'maintenance' where id = $1`),
		"inactive":             sql(`update vehicles set status = 'inactive' where id = $1`),
		"another agency's":     sql(`update vehicles set agency_id = 2 where id = $1`),
		"not for rent":         sql(`update vehicles set hourly_rate = null where id = $1`),
		"low":                  reports(`{"telemetry.battery_level_percent": {"v": 9.5}}`),
		"with a critical lamp": reports(`{"diagnostics.warning_lamps": {"v": ["service_due", "oil_pressure"]}}`),
		"without a position":   sql(`delete from positions where vehicle_id = $1`),
		"in use": func(id telematics.VehicleID) {
			w.amend(rental.BookingStart, w.book(draft(id, 0, 1)).ID, noon, beginAt(noon))
		},
		"its unit opens it late": sql(
			`update units set protocol = 'ovms', installation = '{"type": "NL", "pin": "4711"}' where vehicle_id = $1`),
		"it cannot be returned": sql(
			`update vehicles set capabilities = array_remove(capabilities, 'lock-and-disable-driving') where id = $1`),
		"its unit declares that it cannot be handed over": sql(
			`update units set actions = '{lock,unlock,lock-and-disable-driving}' where vehicle_id = $1`),
	}
	with := map[string]func(telematics.VehicleID){
		"another lamp":        reports(`{"diagnostics.warning_lamps": {"v": ["service_due"]}}`),
		"a trouble code":      reports(`{"diagnostics.dtcs": {"v": ["P0420"]}}`),
		"energy not reported": sql(`update snapshots set fields = fields - 'telemetry.battery_level_percent' where vehicle_id = $1`),
		"what its record lacks, its unit declares": func(id telematics.VehicleID) {
			w.exec(`update vehicles set capabilities = '{}' where id = $1`, id)
			w.exec(`update units set actions = '{unlock-and-enable-driving,lock-and-disable-driving}' where vehicle_id = $1`, id)
		},
		"a report without place": reports(`{"location.latitude": {"v": "north"}}`),
	}
	wants := map[telematics.VehicleID]string{}
	for what, change := range without {
		id := w.anotherOffered()
		change(id)
		wants[id] = what
	}
	for what, change := range with {
		id := w.anotherOffered()
		change(id)
		wants[id] = what
	}
	offered := w.offered(func(q *rental.OfferQuery) { q.Limit = 100 })
	for id, what := range wants {
		if _, want := with[what]; slices.Contains(offered, id) != want {
			t.Errorf("%s: offered %v, want %v", what, !want, want)
		}
	}
}

// anotherOffered adds a vehicle like the first one of an offer world.
func (w *rentalWorld) anotherOffered() (id telematics.VehicleID) {
	w.t.Helper()
	require.NoError(w.t, w.here.Pool.Get(&id, `
		insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features,
			capabilities, hourly_rate, deposit)
		select (select max(id) + 1 from vehicles), agency_id, status, powertrain, plate_number, brand, model, year, color, category, image,
			features, capabilities, hourly_rate, deposit from vehicles where id = 1 returning id`))
	w.exec(`insert into units (serial, vehicle_id, status, last_seen, changed_at) values ('another-' || $1::bigint, $1, 'online', $2, $2)`,
		id, noon)
	w.places(id, middle.Latitude+0.001, middle.Longitude)
	w.report(id, `{"telemetry.battery_level_percent": {"v": 80}, "telemetry.remaining_range_km": {"v": 200}}`)
	return id
}

func TestFindOffers_ByWhatTheClientWants(t *testing.T) {
	w := newOfferWorld(t)
	w.exec(`update vehicles set category = 'van', features = '{isofix}' where id = 2`)
	w.report(3, `{"telemetry.battery_level_percent": {"v": 50}, "telemetry.remaining_range_km": {"v": 90}}`)
	w.exec(`update snapshots set fields = fields - 'telemetry.remaining_range_km' where vehicle_id = 4`)
	w.offers("a van", []telematics.VehicleID{2}, func(q *rental.OfferQuery) { q.Category = "van" })
	both := []string{"isofix", "navigation"}
	w.offers("with navigation", []telematics.VehicleID{1, 3, 4}, func(q *rental.OfferQuery) { q.Features = both })
	w.offers("with half of its energy", []telematics.VehicleID{1, 2, 3, 4}, func(q *rental.OfferQuery) { q.MinEnergyPercent = 50 })
	w.offers("with more", []telematics.VehicleID{1, 2, 4}, func(q *rental.OfferQuery) { q.MinEnergyPercent = 51 })
	w.offers("for 100 km", []telematics.VehicleID{1, 2}, func(q *rental.OfferQuery) { q.MinRangeKm = 100 })
	w.places(1, 48.12, 11.6) // Ostbahnhof
	w.offers("at a station", []telematics.VehicleID{1}, func(q *rental.OfferQuery) { q.Station, q.HasNear = 2, false })
	w.offers("at the other one", []telematics.VehicleID{2, 3, 4}, func(q *rental.OfferQuery) { q.Station = 1 })
	for field, change := range map[string]func(*rental.OfferQuery){
		"station_id": func(q *rental.OfferQuery) { q.Station = 3 },
		"from":       func(q *rental.OfferQuery) { q.From = noon.Add(-time.Hour) },
		"to":         func(q *rental.OfferQuery) { q.From, q.To = noon.Add(time.Hour), noon.Add(time.Hour) },
	} {
		q := nearby
		change(&q)
		_, _, err := w.here.FindOffers(t.Context(), q)
		var wrong *rental.FieldError
		if !errors.As(err, &wrong) || wrong.Field != field {
			t.Errorf("%v, want an error of %s", err, field)
		}
	}
}

func TestFindOffers_PositionsAreRounded(t *testing.T) {
	w := newOfferWorld(t)
	w.exec(`update rental_rules set rules = '{"position_decimals": 2}'`)
	w.places(1, 48.1378, 11.5561) // 48.14, 11.56 is the middle
	found, _, err := w.here.FindOffers(t.Context(), rental.OfferQuery{
		Agency: 1, Near: middle, HasNear: true, Radius: 1, Limit: 10, Now: noon})
	if err != nil || len(found) == 0 || found[0].Vehicle.ID != 1 || found[0].Position != middle || found[0].Metres != 0 {
		t.Errorf("offers %+v, %v; want vehicle 1 at the middle", found, err)
	}
}

func TestFindOffers_AcrossThe180thMeridian(t *testing.T) {
	w := newOfferWorld(t)
	w.places(1, -18, 179.999)
	w.places(2, -18, -179.999)
	for _, east := range []float64{179.9995, -179.9995} {
		found, _, err := w.here.FindOffers(t.Context(), rental.OfferQuery{Agency: 1, HasNear: true, Radius: 300, Limit: 10, Now: noon,
			Near: telematics.Position{Latitude: -18, Longitude: east}})
		if err != nil || len(found) != 2 {
			t.Errorf("near %g: %d offers, %v; want 2", east, len(found), err)
		}
	}
}

func TestFindOffers_HasThePriceOfTheTariff(t *testing.T) {
	w := newOfferWorld(t)
	w.exec(`insert into tariffs (agency_id, category, version, tariff, currency) values
		(1, '', 1, '{"minute": 20, "version": 1}', 'EUR'), (1, 'compact', 1, '{"minute": 30, "version": 1}', 'EUR'),
		(1, 'van', 1, '{"minute": 50, "version": 1}', 'EUR'), (1, 'van', 2, null, 'EUR')`)
	w.exec(`update vehicles set category = 'van', hourly_rate = null where id = 2`)
	found, _, err := w.here.FindOffers(t.Context(), nearby)
	if err != nil || len(found) != 4 {
		t.Fatalf("%d offers, %v", len(found), err)
	}
	for i, want := range []rental.Minor{15 * 30, 15 * 20} {
		assert.Equal(t, found[i].Booking.Price.Subtotal, want, "vehicle %d costs", found[i].Vehicle.ID)
	}
}

func TestFreeTimes_AreThoseWithoutABooking(t *testing.T) {
	w := newRentalWorld(t)
	at := func(h float64) time.Time { return noon.Add(time.Duration((24 + h) * float64(time.Hour))) }
	within := rental.Span{From: at(0), To: at(10)}
	d := draft(1, 0, 0)
	for _, hours := range [][2]float64{{-1, 1}, {2, 3}, {3, 4}, {9, 12}} {
		d.Start, d.End = at(hours[0]), at(hours[1])
		w.book(d)
	}
	d.Start, d.End = at(5), at(6)
	w.amend(rental.BookingCancel, w.book(d).ID, noon, cancelAt(noon))
	free, err := w.here.FreeTimes(t.Context(), 1, 1, within, noon)
	want := []rental.Span{{From: at(1), To: at(2)}, {From: at(4), To: at(9)}}
	if err != nil || !slices.Equal(free, want) {
		t.Errorf("free %v, %v; want %v", free, err, want)
	}
	if _, err := w.here.FreeTimes(t.Context(), 2, 1, within, noon); codeOf(err) != telematics.VehicleNotFound {
		t.Errorf("another agency's vehicle: %v, want %s", err, telematics.VehicleNotFound)
	}
	for id, change := range map[telematics.VehicleID]string{
		2: `update vehicles set status = 'inactive' where id = 2`,
		3: `update vehicles set capabilities = '{unlock-and-enable-driving}' where id = 3`,
		4: `update units set vehicle_id = null where vehicle_id = 4`,
	} {
		w.exec(change)
		if free, err := w.here.FreeTimes(t.Context(), 1, id, within, noon); err != nil || len(free) != 0 {
			t.Errorf("after %s: free %v, %v; want never", change, free, err)
		}
	}
}
