package alerts

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"motorpool/alerts"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// addCar adds a vehicle of agency 1 that is online, with a report of now.
func (w *world) addCar(id int, values ...any) {
	w.Helper()
	w.exec(`insert into vehicles (id, agency_id, status, powertrain, plate_number, brand, model, year, color, category, image, features,
			capabilities) values ($1, 1, 'available', 'electric', 'M-' || $1::bigint, '', '', 2024, '', '', '', '{}', '{}')`, id)
	w.exec(`insert into units (serial, vehicle_id, status, last_seen, said_at, changed_at, gap_ms)
		values ('u' || $1::bigint, $1, 'online', $2, $2, $2, 60000)`, id, w.now)
	w.report(id, append([]any{
		telematics.Latitude, 48.1, telematics.Longitude, 11.5, telematics.Ignition, "off", telematics.IsLocked, true,
		telematics.OnboardV, 12.8, telematics.Battery, 80.0,
	}, values...)...)
}

// report stores fields and values as reported now.
func (w *world) report(id int, values ...any) {
	w.Helper()
	s := telematics.NewSnapshot()
	for i := 0; i < len(values); i += 2 {
		s[values[i].(telematics.Field)] = telematics.Reading{Value: values[i+1], At: w.now}
	}
	fields, err := vehicles.EncodeSnapshot(s)
	require.NoError(w, err)
	w.exec(`insert into snapshots (vehicle_id, fields, updated_at) values ($1, $2, clock_timestamp())
		on conflict (vehicle_id) do update set fields = snapshots.fields || excluded.fields, updated_at = excluded.updated_at`,
		id, string(fields))
	w.exec(`update units set last_seen = $2 where vehicle_id = $1`, id, w.now)
}

// hear notes a sign of life of all units, now.
func (w *world) hear() { w.exec(`update units set last_seen = $1`, w.now) }

func (w *world) advance(by time.Duration) { w.now = w.now.Add(by) }

func (w *world) sweep() {
	w.Helper()
	require.NoError(w, w.store.Sweep(w.Context()))
}

// book adds a booking of a vehicle that is active, until a time.
func (w *world) book(vehicle int, until time.Time) (id int64) {
	w.Helper()
	w.exec(`insert into stations (id, agency_id, name, address, latitude, longitude) values (1, 1, '', '', 0, 0) on conflict do nothing`)
	w.exec(`insert into clients (agency_id, subject) values (1, 'anna') on conflict do nothing`)
	require.NoError(w, w.db.Pool.Get(&id, `
		insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at, end_at,
			started_at, currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
		select 'B-' || gen_random_uuid(), 'active', 1, c.id, $1, 1, 1, $2, $3, $2, 'EUR', 0, 0, 0, 0, 0, 0, $2 from clients c
		returning id`, vehicle, w.now, until))
	return id
}

func (w *world) endBookings() {
	w.exec(`update bookings set state = 'completed', ended_at = $1 where state = 'active'`, w.now)
}

// command adds a settled command of a vehicle.
func (w *world) command(vehicle int, action telematics.Action, state telematics.State, reason string, assurance int) {
	w.Helper()
	w.exec(`
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, requested_at, sent_at,
			received_at, completed_at, deadline, state, reason, assurance, attempts, detail)
		select (left(command_id_at($2)::text, 19) || right(gen_random_uuid()::text, 17))::uuid, $1, 1, 'u' || $1::bigint, $3, 'access',
			'i', 'eva', 'admin', $2::timestamptz, $2, case when $4 <> 'unknown' then $2::timestamptz end, $2, $2, $4, $5, $6, 1, ''`,
		vehicle, w.now, action, state, reason, assurance)
}

func (w *world) access(person, action string, from, to int) {
	w.exec(`insert into activity (at, actor_subject, actor_role, agency_id, vehicle_id, action, outcome, code, latency_us, late, note)
		select $1, $2, 'admin', 1, n, $3, 'executed', '', 0, false, '' from generate_series($4::bigint, $5) n`,
		w.now, person, action, from, to)
}

// charge adds a charge of a booking of vehicle 7.
func (w *world) charge(state string) {
	id := w.book(7, w.now.Add(time.Hour))
	w.exec(`insert into charges (id, booking_id, kind, number, state, currency, amount, created_at)
		values ($1, $2, 'fee', 1, $3, 'EUR', 100, $4)`, uuid.New(), id, state, w.now)
	w.command(7, telematics.Unlock, telematics.Succeeded, "", 0)
}

// areasAt are areas: those of an agency at a position, and the kind in which rentals end.
type areasAt func(telematics.AgencyID, telematics.Position) ([]rental.Area, rental.AreaKind)

func (a areasAt) At(_ context.Context, id telematics.AgencyID, at telematics.Position) ([]rental.Area, rental.AreaKind, error) {
	in, ends := a(id, at)
	return in, ends, nil
}

// ruleCase is how a rule is raised and cleared.
type ruleCase struct {
	raise    func(*world)
	severity alerts.Severity
	after    time.Duration
	clear    func(*world)
	offline  bool // the unit is not heard any more
}

func (w *world) open() (found []string) {
	w.Helper()
	open, err := w.store.Open(w.Context())
	require.NoError(w, err)
	for _, a := range open {
		found = append(found, fmt.Sprintf("%s %s", a.Rule, a.Severity))
	}
	return found
}

func (w *world) wants(want ...string) {
	w.Helper()
	assert.EqualSlices(w, w.open(), want, "open")
}

// finds sweeps, after which these alerts are to be open.
func (w *world) finds(want ...string) {
	w.Helper()
	w.sweep()
	w.wants(want...)
}

// after sweeps when a time has passed.
func (w *world) after(by time.Duration, want ...string) {
	w.Helper()
	w.advance(by)
	w.finds(want...)
}

// heardAfter sweeps when a time has passed and the units give a sign of life.
func (w *world) heardAfter(by time.Duration, want ...string) {
	w.Helper()
	w.advance(by)
	w.hear()
	w.finds(want...)
}

func reports(values ...any) func(*world) {
	return func(w *world) { w.report(7, values...) }
}

var ruleCases = map[alerts.Rule]ruleCase{
	alerts.Battery12VLow: {
		raise: reports(telematics.OnboardV, 12.1), severity: alerts.Warning, after: 10 * time.Minute,
		clear: reports(telematics.OnboardV, 12.5),
	},
	alerts.EnergyLow: {
		raise: reports(telematics.Battery, 9.0), severity: alerts.Warning, after: 5 * time.Minute, clear: reports(telematics.Battery, 50.0),
	},
	alerts.Silent: {
		raise:    func(w *world) { w.sweep(); w.advance(7 * time.Minute) },
		severity: alerts.Warning, after: 5 * time.Minute, // silent for 12 min
		clear: (*world).hear, offline: true,
	},
	alerts.IgnitionWithoutBooking: {
		raise: reports(telematics.Ignition, "on"), severity: alerts.Critical, after: time.Minute,
		clear: reports(telematics.Ignition, "off"),
	},
	alerts.LeftOpen: {
		raise: reports(telematics.IsLocked, false, telematics.DoorTrunk, "open"), severity: alerts.Warning, after: 5 * time.Minute,
		clear: reports(telematics.IsLocked, true, telematics.DoorTrunk, "closed"),
	},
	alerts.OutsideArea: {
		raise:    reports(telematics.Ignition, nil, telematics.Longitude, 11.7),
		severity: alerts.Warning, after: 2 * time.Minute, clear: reports(telematics.Longitude, 11.5),
	},
	alerts.ParkedForbidden: { // immediately, at the end of a booking
		raise: func(w *world) {
			w.book(7, w.now.Add(time.Hour))
			w.command(7, telematics.Unlock, telematics.Succeeded, "", 0)
			w.report(7, telematics.Longitude, 11.3)
			w.sweep()
			w.endBookings()
		},
		severity: alerts.Warning, clear: func(w *world) { w.book(7, w.now.Add(time.Hour)) },
	},
	alerts.Overdue: {
		raise: func(w *world) {
			w.book(7, w.now.Add(time.Minute))
			w.command(7, telematics.Unlock, telematics.Succeeded, "", 0)
			w.advance(time.Minute)
		},
		severity: alerts.Warning, after: 15 * time.Minute, clear: (*world).endBookings,
	},
	alerts.StartedNotOpened: {
		raise:    func(w *world) { w.book(7, w.now.Add(time.Hour)) },
		severity: alerts.Warning, after: 15 * time.Minute,
		clear: func(w *world) { w.command(7, telematics.Unlock, telematics.Succeeded, "", 0) },
	},
}

// Each rule with a time opens after that, stays open over restarts of every instance meanwhile, is
// acknowledged, and is cleared when its condition ends. Package lab/service has the others.
func TestRules_OpenStayAndAreCleared(t *testing.T) {
	for _, setting := range alerts.Defaults() {
		c, ok := ruleCases[setting.Rule]
		if !ok && setting.For == 0 {
			continue
		}
		t.Run(string(setting.Rule), func(t *testing.T) {
			if !ok {
				t.Fatal("no case")
			}
			w := newWorld(t)
			w.withPlaces()
			w.addCar(7)
			w.finds()
			c.raise(w)
			if c.after > 0 {
				w.finds()
				w.restart()
				w.advance(c.after - 30*time.Second)
				if !c.offline {
					w.hear()
				}
				w.finds()
				w.advance(30 * time.Second)
				w.restart()
			}
			w.sweep()
			w.sweep()
			want := string(setting.Rule) + " " + string(c.severity)
			w.wants(want)
			w.restart()
			w.finds(want)
			open, _ := w.store.Open(t.Context())
			if len(open) != 1 {
				t.Fatal("not open")
			}
			of := fmt.Sprintf(" %s %d", setting.Rule, open[0].Vehicle)
			_, err := w.store.Acknowledge(t.Context(), open[0].ID, 0, "seen", by("eva"))
			require.NoError(t, err)
			w.sweep()
			c.clear(w)
			w.sweep()
			w.finds()
			got := w.find(alerts.Query{})
			if len(got) != 1 || got[0].Cleared.IsZero() || got[0].Seen == nil || len(got[0].Facts) == 0 {
				t.Errorf("found %+v", got)
			}
			assert.DeepEqual(t, w.takeEvents(), []string{"opened" + of, "acknowledged" + of, "cleared" + of}, "events")
		})
	}
}

func TestSweep_BetweenFullOnesReadsTheLatestCommandsAndThoseOfOpenAlerts(t *testing.T) {
	w := newWorld(t)
	for id := 7; id <= 9; id++ {
		w.addCar(id)
	}
	briefly := func() {
		t.Helper()
		for _, c := range conditions {
			settings, err := readSettings(t.Context(), w.db.Pool, "")
			require.NoError(t, err)
			require.NoError(t, w.store.sweep(t.Context(), c, settings, w.now, false))
		}
	}
	unknown := func(vehicle int) { w.command(vehicle, telematics.Lock, telematics.Unknown, "", 0) }
	unknown(7)
	briefly()
	w.wants("command_unknown warning")
	unknown(8)
	w.advance(troublesWithin + time.Minute) // such as after an outage
	w.hear()
	briefly()
	w.wants("command_unknown warning")
	w.finds("command_unknown warning", "command_unknown warning")
	w.command(8, telematics.Lock, telematics.Succeeded, "", 0)
	briefly()
	w.wants("command_unknown warning")
	w.advance(telematics.UnitHealthFor)
	w.hear()
	briefly()
	w.wants()
}

// withPlaces has the store know areas.
func (w *world) withPlaces() {
	w.places = areasAt(func(_ telematics.AgencyID, at telematics.Position) ([]rental.Area, rental.AreaKind) {
		var in []rental.Area
		if at.Longitude < 11.6 {
			in = append(in, rental.Area{Name: "town", Kind: rental.AreaOperating})
		}
		if at.Longitude < 11.4 {
			in = append(in, rental.Area{Name: "park", Kind: rental.AreaNoParking})
		}
		return in, rental.AreaOperating
	})
	w.restart()
}

func TestSweep_OpensOncePerVehicleAndNamesIt(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.addCar(8, telematics.DTCs, []string{"P0420"})
	w.report(7, telematics.DTCs, []string{"P0420"})
	w.sweep()
	w.sweep()
	assert.EqualSlices(t, w.takeEvents(), []string{"opened trouble_code 7", "opened trouble_code 8"}, "events")
	// The facts follow the vehicle.
	w.report(7, telematics.DTCs, []string{"P0420", "P0171"})
	w.sweep()
	found := w.find(alerts.Query{Vehicle: 7})
	if len(found) != 1 || fmt.Sprint(found[0].Facts["codes"]) != "[P0420 P0171]" || found[0].Plate != "M-7" {
		t.Errorf("found %+v", found)
	}
}

// A vehicle that counts the distance to its service lights a lamp as well.
func TestServiceDue_IsOneAlertByDistanceAndLamp(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.ServiceDueKm, -120.0, telematics.WarningLamps, []string{"service_due"})
	w.addCar(8, telematics.WarningLamps, []string{"service_due", "abs"})
	w.sweep()
	w.finds("lamp info", "service_due info", "service_due info")
	if found := w.find(alerts.Query{Rule: alerts.Lamp}); len(found) != 1 || fmt.Sprint(found[0].Facts["lamps"]) != "[abs]" {
		t.Errorf("lamps: %+v, want abs alone", found)
	}
	w.report(7, telematics.ServiceDueKm, 20000.0, telematics.WarningLamps, []string{})
	w.report(8, telematics.WarningLamps, []string{"abs"})
	w.finds("lamp info")
}

// voltsAfter sweeps when a time has passed and vehicle 7 reports its voltage.
func (w *world) voltsAfter(by time.Duration, volts float64, want ...string) {
	w.Helper()
	w.advance(by)
	w.report(7, telematics.OnboardV, volts)
	w.finds(want...)
}

func TestSweep_SeverityRisesAfterItsTimeAndTheVoltageMustRecover(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.OnboardV, 12.1)
	later := w.voltsAfter
	later(0, 12.1)
	later(10*time.Minute, 12.1, "battery_12v_low warning")
	later(time.Minute, 11.7, "battery_12v_low warning") // once may be a measurement under load
	later(time.Minute, 12.0, "battery_12v_low warning")
	later(time.Minute, 11.7, "battery_12v_low warning")
	later(10*time.Minute, 11.7, "battery_12v_low critical")
	later(time.Minute, 12.1, "battery_12v_low critical") // the highest that it has reached
	later(time.Minute, 12.35, "battery_12v_low critical")
	later(time.Minute, 12.45)
	later(time.Minute, 12.35) // opens none
	later(10*time.Minute, 12.35)
	if got := w.takeEvents(); !slices.Equal(got,
		[]string{"opened battery_12v_low 7", "raised battery_12v_low 7", "cleared battery_12v_low 7"}) {
		t.Errorf("events %v", got)
	}
	// With the ignition on, only the lowest limit counts.
	w.report(7, telematics.Ignition, "on", telematics.OnboardV, 12.0)
	w.exec(`update vehicles set status = 'maintenance'`) // so that its ignition may be on
	w.sweep()
	w.advance(10 * time.Minute)
	w.report(7, telematics.OnboardV, 12.0)
	w.finds()
}

// Limits are not reached by the rounding of what is stored, and a value about a limit opens once.
func TestSweep_ValuesAtTheirLimits(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.OnboardV, 12.2, telematics.Battery, 20.0)
	w.sweep()
	w.heardAfter(10 * time.Minute)
	w.report(7, telematics.Battery, 19.9)
	w.sweep()
	w.heardAfter(5*time.Minute, "energy_low info")
	for _, percent := range []float64{20, 21.9} {
		w.report(7, telematics.Battery, percent)
		w.finds("energy_low info")
	}
	w.report(7, telematics.Battery, 22.0)
	w.finds()
}

func TestSweep_AClockThatWasAheadDelaysNoAlert(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.OnboardV, 12.1)
	later := w.voltsAfter
	later(24*time.Hour, 12.1)
	later(-24*time.Hour, 12.1)
	later(10*time.Minute, 12.1, "battery_12v_low warning")
	later(24*time.Hour, 11.7, "battery_12v_low warning")
	later(-24*time.Hour, 11.7, "battery_12v_low warning")
	later(10*time.Minute, 11.7, "battery_12v_low critical")
}

func TestSweep_WhatIsOfflineNeitherOpensNorIsCleared(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.OnboardV, 12.1)
	w.addCar(8)
	w.sweep()
	w.heardAfter(10*time.Minute, "battery_12v_low warning")
	w.report(8, telematics.OnboardV, 12.1)
	w.exec(`update units set status = 'offline', changed_at = last_seen`)
	w.sweep()
	w.advance(10 * time.Minute)
	w.store.receives = time.Time{}
	w.finds("battery_12v_low warning")
	w.exec(`update units set status = 'online'`)
	w.hear()
	w.sweep()
	w.heardAfter(10*time.Minute, "battery_12v_low warning", "battery_12v_low warning")
}

// An outage of the service, or of the MQTT broker, is no silence of the units.
func TestSilent_NotWhileNoMessagesArrive(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.sweep()
	w.advance(time.Hour) // all instances were stopped
	w.restart()
	w.finds()
	w.advance(10 * time.Minute)
	w.store.Receiving = func() bool { return false }
	w.finds()
	w.store.Receiving = func() bool { return true }
	w.sweep()
	w.after(9 * time.Minute)
	w.after(time.Minute, "silent warning")
	w.exec(`update units set status = 'standby'`)
	w.finds()
}

// The first sweep after that comes before the connections of the machine, and of the units, have
// noticed it.
func TestSilent_NotOfUnitsWhileThisMachineWasSuspended(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.sweep()
	w.advance(time.Hour)
	w.store.looked = w.store.looked.Add(-time.Hour)
	w.sweep()
	w.wants()
	w.advance(10 * time.Minute)
	w.sweep()
	w.wants("silent warning")
}

func TestSettings_OfTheAgencyCount(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.Battery, 15.0)
	limit := 14.0
	w.set(alerts.Setting{Rule: alerts.EnergyLow, For: 5 * time.Minute, Levels: []alerts.Level{{Severity: alerts.Info, Limit: &limit}}})
	w.sweep()
	w.heardAfter(5 * time.Minute)
	limit = 16
	w.set(alerts.Setting{Rule: alerts.EnergyLow, Levels: []alerts.Level{{Severity: alerts.Critical, Limit: &limit}}})
	w.finds("energy_low critical")
	// A rule that is switched off has no alert.
	w.set(alerts.Setting{Rule: alerts.EnergyLow, Off: true, Levels: []alerts.Level{{Severity: alerts.Critical, Limit: &limit}}})
	w.finds()
}

func (w *world) set(settings ...alerts.Setting) {
	w.Helper()
	require.NoError(w, w.store.SetSettings(w.Context(), 1, settings, by("eva")))
}

// Where a vehicle is when it is parked is known once it has reported that with the ignition off.
func TestMoved_ComparesWithThePositionSinceTheIgnitionIsOff(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.exec(`update vehicles set status = 'in_use'`)
	w.report(7, telematics.Ignition, "on", telematics.Longitude, 11.51)
	w.sweep()
	w.advance(time.Minute)
	w.report(7, telematics.Ignition, "off") // the position is the former one
	w.exec(`update vehicles set status = 'available'`)
	w.sweep()
	w.advance(time.Minute)
	w.report(7, telematics.Latitude, 48.1, telematics.Longitude, 11.52)
	w.sweep()
	w.advance(time.Minute)
	w.report(7, telematics.Latitude, 48.1, telematics.Longitude, 11.521) // 75 m
	w.finds()
	// A fix that is much older than its report counts by its time.
	w.report(7, telematics.Ignition, "on")
	w.exec(`update vehicles set status = 'maintenance'`)
	w.sweep()
	w.report(7, telematics.Ignition, "off", telematics.Latitude, 48.1, telematics.Longitude, 11.4,
		telematics.LocatedAt, w.now.Add(-time.Hour))
	w.exec(`update vehicles set status = 'available'`)
	w.sweep()
	w.report(7, telematics.Latitude, 48.1, telematics.Longitude, 11.53, telematics.LocatedAt, w.now)
	w.finds()
	w.moves(11.54)
	w.wants("moved_without_booking critical")
	// It is driven away: the alert stays.
	w.report(7, telematics.Ignition, "on", telematics.Longitude, 11.55)
	w.sweep()
	w.heardAfter(time.Minute, "moved_without_booking critical", "ignition_without_booking critical")
	w.report(7, telematics.Ignition, "off", telematics.Latitude, 48.1, telematics.Longitude, 11.55)
	w.finds()
}

// locate reports where vehicle 7 is now.
func (w *world) locate(longitude float64, values ...any) {
	w.Helper()
	w.report(7, append([]any{telematics.Latitude, 48.1, telematics.Longitude, longitude, telematics.LocatedAt, w.now}, values...)...)
	w.sweep()
}

// moves reports twice where vehicle 7 is.
func (w *world) moves(longitude float64) {
	w.Helper()
	w.locate(longitude)
	w.advance(time.Minute)
	w.locate(longitude)
}

// A receiver that errs once moves no vehicle.
func TestMoved_OnceASecondReportConfirmsIt(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.sweep()
	for range 2 {
		w.advance(time.Minute)
		w.locate(11.6)
		w.sweep() // reads the same report again
		w.wants()
		w.advance(time.Minute)
		w.locate(11.5)
		w.wants()
	}
	w.advance(time.Minute)
	w.locate(11.6)
	w.advance(time.Minute)
	w.locate(11.61)
	w.wants("moved_without_booking critical")
	if metres, _ := w.find(alerts.Query{})[0].Facts["metres"].(float64); metres < 8000 {
		t.Errorf("moved by %v m, want the distance of the second report", metres)
	}
}

// So it is with rules about areas.
func TestAreas_OnceASecondReportConfirmsThePosition(t *testing.T) {
	w := newWorld(t)
	w.withPlaces()
	w.set(alerts.Setting{Rule: alerts.OutsideArea, Levels: []alerts.Level{{Severity: alerts.Warning}}},
		alerts.Setting{Rule: alerts.MovedWithoutBooking, Off: true, Levels: []alerts.Level{{Severity: alerts.Warning}}})
	w.addCar(7)
	w.sweep()
	for longitude, want := range map[float64]string{11.7: "outside_area warning", 11.3: "parked_forbidden warning"} {
		w.advance(time.Minute)
		w.locate(longitude)
		w.wants()
		w.advance(time.Minute)
		w.locate(11.5)
		w.wants()
		w.moves(longitude)
		w.wants(want)
		w.locate(11.5)
		w.wants()
	}
}

// The positions of a vehicle that stands differ by some metres.
func TestAreas_OneAlertOnTheirBorder(t *testing.T) {
	for border, want := range map[float64]string{11.4: "parked_forbidden warning", 11.6: "outside_area warning"} {
		w := newWorld(t)
		w.withPlaces()
		const metres = 1 / 74_262.0 // in degrees of longitude
		in := map[float64]float64{11.4: -metres, 11.6: metres}[border]
		w.addCar(7, telematics.Longitude, border+7*in)
		w.sweep()
		w.heardAfter(2*time.Minute, want)
		for _, m := range []float64{-8, 7, -15} {
			w.advance(time.Minute)
			w.locate(border + m*in)
			w.wants(want)
		}
		w.locate(border - 40*in)
		w.wants()
		w.locate(border - 8*in)
		w.wants()
	}
}

func TestAreas_TheirBorderIsAsItWasAfterABooking(t *testing.T) {
	w := newWorld(t)
	w.withPlaces()
	const metres = 1 / 74_262.0
	w.addCar(7, telematics.Longitude, 11.6+7*metres)
	w.sweep()
	w.heardAfter(2*time.Minute, "outside_area warning")
	w.advance(time.Minute)
	w.locate(11.6 - 15*metres)
	w.wants("outside_area warning")
	w.exec(`update vehicles set status = 'in_use'`)
	w.heardAfter(time.Minute)
	w.exec(`update vehicles set status = 'available'`)
	w.heardAfter(time.Minute)
	w.heardAfter(3 * time.Minute)
}

// Of these, only those of the kind in which rentals end count, and of the agency that has the
// vehicle now.
func TestAreas_AreThoseOfTheAgency(t *testing.T) {
	w := newWorld(t)
	w.places = areasAt(func(id telematics.AgencyID, _ telematics.Position) ([]rental.Area, rental.AreaKind) {
		if id == 1 {
			return []rental.Area{{Name: "yard", Kind: rental.AreaNoParking}}, rental.AreaOperating
		}
		return []rental.Area{{Name: "town", Kind: rental.AreaOperating}}, rental.AreaEndOnly
	})
	w.restart()
	w.addCar(7)
	w.finds("parked_forbidden warning")
	w.exec(`update vehicles set agency_id = 2`)
	w.finds()
	w.sweep()
	w.heardAfter(2*time.Minute, "outside_area warning")
	assert.Equal(t, len(w.find(alerts.Query{Agency: 2})), 1, "alerts of the agency that has it")
}

func TestAreas_OfWhatHasMovedDuringASweepThatFails(t *testing.T) {
	w := newWorld(t)
	w.withPlaces()
	w.addCar(7)
	w.sweep()
	w.report(7, telematics.Longitude, 11.7)
	w.exec(`alter table bookings rename to gone`)
	if err := w.store.Sweep(t.Context()); err == nil {
		t.Error("a sweep that has failed returns no error")
	}
	w.exec(`alter table gone rename to bookings`)
	w.sweep()
	w.heardAfter(2*time.Minute, "moved_without_booking critical", "outside_area warning")
}

func TestMoved_FromWhereOnlyALaterFixConfirmsThatItIsParked(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.Ignition, "on")
	w.exec(`update vehicles set status = 'in_use'`)
	w.sweep()
	w.advance(time.Second)
	w.report(7, telematics.Ignition, "off")
	w.exec(`update vehicles set status = 'available'`)
	w.advance(2 * time.Minute)
	w.report(7, telematics.LocatedAt, w.now)
	w.finds()
	w.moves(11.53)
	w.wants("moved_without_booking critical")
}

func TestMoved_OnceItsSpeedConfirmsIt(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.SpeedKmh, 0.0)
	w.sweep()
	w.advance(time.Minute)
	w.locate(11.6, telematics.SpeedKmh, 4.0)
	w.wants()
	w.report(7, telematics.SpeedKmh, 40.0)
	w.finds("moved_without_booking critical")
}

// A vehicle that is carried away, and whose unit then falls silent, is still looked for.
func TestMoved_WithoutASecondReportAfterTwiceTheUsualInterval(t *testing.T) {
	for interval, after := range map[time.Duration]time.Duration{
		10 * time.Second: 2 * time.Minute, 90 * time.Second: 3 * time.Minute, 8 * time.Minute: telematics.OnlineFor,
	} {
		w := newWorld(t)
		w.addCar(7)
		w.exec(`update units set gap_ms = $1`, interval.Milliseconds())
		w.sweep()
		w.locate(11.6)
		w.exec(`update units set status = 'offline', changed_at = last_seen`)
		w.after(after - time.Second)
		w.after(time.Second, "moved_without_booking critical")
		w.after(time.Minute, "moved_without_booking critical")
	}
}

func TestMoved_NotByABooking(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.sweep()
	w.book(7, w.now.Add(time.Hour))
	w.command(7, telematics.Unlock, telematics.Succeeded, "", 0)
	w.sweep()
	w.report(7, telematics.Longitude, 11.6)
	w.sweep()
	w.endBookings()
	w.finds()
	w.moves(11.7)
	w.wants("moved_without_booking critical")

	// Nor by a start, until that is taken back.
	w.addCar(8, telematics.Ignition, "on")
	id := w.book(8, w.now.Add(time.Hour))
	w.exec(`update bookings set state = 'upcoming', started_at = null where id = $1`, id)
	w.exec(`insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content)
		values ($1, $2, 'start', 'open', 'unlock', $3, '{}', '{}')`, uuid.New(), id, w.now)
	w.sweep()
	w.heardAfter(2*time.Minute, "moved_without_booking critical")
	w.exec(`update transitions set step = 'refund'`)
	w.sweep()
	w.heardAfter(2*time.Minute, "moved_without_booking critical", "ignition_without_booking critical")
}

func TestMoved_NotInMaintenance(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.sweep()
	for _, status := range []string{"maintenance", "inactive"} {
		w.exec(`update vehicles set status = $1`, status)
		w.sweep()
		w.report(7, telematics.Longitude, 11.6) // carried to a workshop
		w.sweep()
		w.exec(`update vehicles set status = 'available'`)
		w.finds()
		w.moves(11.5)
		w.wants("moved_without_booking critical")
		w.report(7, telematics.Longitude, 11.6)
		w.finds()
	}
}

func TestMassAccess_IsOfTheAgencyThatHasAllTheVehicles(t *testing.T) {
	w := newWorld(t)
	w.access("eva", telematics.StatusRead, 100, 149)
	w.finds()
	w.access("eva", "command.unlock", 149, 151)
	w.sweep()
	found := w.find(alerts.Query{Agency: 1, Persons: true})
	if len(found) != 1 || found[0].Person != "eva" || found[0].Facts["vehicles"] != 52.0 || found[0].Facts["opened"] != 3.0 {
		t.Fatalf("found %+v", found)
	}
	w.access("eva", telematics.StatusRead, 200, 200)
	w.exec(`insert into activity (at, actor_subject, actor_role, agency_id, vehicle_id, action, outcome, code, latency_us, late, note)
		values ($1, 'eva', 'admin', 2, 300, 'status.read', 'executed', '', 0, false, '')`, w.now)
	w.sweep()
	w.sweep()
	if found := w.find(alerts.Query{Persons: true, State: alerts.Open}); len(found) != 1 || found[0].Agency != 0 {
		t.Errorf("with a vehicle of another agency: %+v", found)
	}
	w.after(time.Hour)
}

// Otherwise all instances together seem to have missed sweeps for half a century when they begin.
func TestMetrics_AnInstanceThatBeginsHasMissedNoSweep(t *testing.T) {
	begun := time.Unix(int64(testutil.ToFloat64(newMetrics(nil).lastSweep)), 0)
	if since := time.Since(begun); since > time.Minute {
		t.Errorf("the last sweep was %v ago, want the time of the start", since)
	}
}

// What waits for a client who does nothing would be forgotten: it is not tried again by itself.
func TestChargeFailed_WhenItDoesNotGoOnForAnHour(t *testing.T) {
	for state, goesOn := range map[string]bool{"unknown": false, "requires_action": false, "declined": false, "declined ": true} {
		t.Run(state, func(t *testing.T) {
			w := newWorld(t)
			w.addCar(7)
			w.charge(strings.TrimSpace(state))
			if goesOn {
				w.exec(`update charges set next_attempt_at = $1`, w.now.Add(2*time.Hour))
			}
			w.sweep()
			w.heardAfter(59 * time.Minute)
			w.advance(time.Minute)
			w.sweep()
			if got := w.open(); slices.Contains(got, "charge_failed warning") == goesOn {
				t.Errorf("open %v", got)
			}
		})
	}
}

// Each booking has its own: that one is paid, or was seen, says nothing of another of the vehicle.
func TestChargeFailed_IsOfEachBooking(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.charge("failed")
	w.sweep()
	first := w.find(alerts.Query{State: alerts.Open})[0]
	if amount := first.Facts["amount"]; fmt.Sprint(amount) != "1.00" {
		t.Errorf("an amount of %v, want it in euros", amount)
	}
	w.endBookings()
	w.advance(time.Minute)
	w.hear()
	w.charge("failed")
	w.sweep()
	open := w.find(alerts.Query{State: alerts.Open})
	if len(open) != 2 || open[0].Booking == first.Booking || open[1].ID != first.ID {
		t.Fatalf("open %+v, want that of the later booking, and %+v", open, first)
	}
	w.exec(`update charges set state = 'paid' where booking_id = $1`, first.Booking)
	w.exec(`update charges set state = 'paid' where booking_id = $1`, open[0].Booking)
	w.exec(`insert into charges (id, booking_id, kind, number, state, currency, amount, created_at)
		values ($1, $2, 'start', 1, 'failed', 'EUR', 250, $3)`, uuid.New(), open[0].Booking, w.now)
	w.sweep()
	if now := w.find(alerts.Query{State: alerts.Open}); len(now) != 1 || fmt.Sprint(now[0].Facts["amount"]) != "2.50" {
		t.Errorf("open %+v, want the charge that has failed now", now)
	}
}

// A fee replaces a payment that only the operator can mend; a refund that the bank returned is
// replaced by another one.
func TestChargeFailed_UntilItIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.charge("paid")
	add := func(kind, state string) {
		w.advance(time.Minute)
		w.hear()
		w.exec(`insert into charges (id, booking_id, kind, number, state, currency, amount, created_at, refunds_charge_id, paid_at)
			select $1, booking_id, $2, 2 + (select count(*) from charges), $3, 'EUR', 100, $4::timestamptz,
				case when $2 = 'refund' then id end, case when $3 = 'paid' then $4::timestamptz end
			from charges where number = 1`, uuid.New(), kind, state, w.now)
		w.sweep()
	}
	add("refund", "failed")
	w.wants("charge_failed warning")
	add("fee", "paid")
	w.wants("charge_failed warning")
	add("refund", "failed")
	w.wants("charge_failed warning")
	add("refund", "paid")
	w.wants()
	add("extension", "failed")
	add("fee", "pending") // for something else: the client owes the extension
	w.wants("charge_failed warning")
	w.exec(`update charges set decline_code = 'refused' where kind = 'extension'`)
	w.sweep()
	w.wants("charge_failed warning")
	w.exec(`update charges set state = 'paid', paid_at = created_at where kind = 'fee'`)
	w.sweep()
	w.wants()
	w.exec(`update charges set created_at = created_at - interval '1 hour' where kind = 'fee'`)
	w.sweep()
	w.wants("charge_failed warning")
	w.exec(`update charges set kind = 'deposit', goal = 'capture', capture_amount = 1, state = 'captured', reason = 'the extension',
		paid_at = created_at
		where kind = 'fee' and number = (select max(number) from charges)`)
	w.sweep()
	w.wants("charge_failed warning") // what was captured before is for something else
	w.exec(`update charges set paid_at = $1 where kind = 'deposit'`, w.now)
	w.sweep()
	w.wants()
}

func TestAlarms_RepeatedOnesAreOneAlert(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	write := func(kinds ...string) {
		t.Helper()
		var batch []alarm
		for _, kind := range kinds {
			batch = append(batch, alarm{7, 1, telematics.Alarm{Kind: kind, Text: "t"}})
		}
		require.NoError(t, w.store.writeAlarms(t.Context(), batch))
	}
	write("towing")
	write("towing", "towing")
	write("jamming", "towing")
	found := w.find(alerts.Query{})
	if len(found) != 1 || fmt.Sprint(found[0].Facts["kinds"]) != "[jamming towing]" {
		t.Fatalf("found %+v", found)
	}
	if a, err := w.store.Acknowledge(t.Context(), found[0].ID, 0, "", by("eva")); err != nil || a.Cleared.IsZero() {
		t.Errorf("acknowledged: %+v, %v; want it cleared", a, err)
	}
	write("towing") // the message again
	w.wants()
	w.advance(2 * time.Minute)
	write("towing")
	w.wants("unit_alarm critical")
	want := []string{"opened", "raised", "acknowledged", "cleared", "opened"}
	for i, e := range w.takeEvents() {
		if i >= len(want) || !strings.HasPrefix(e, want[i]) {
			t.Errorf("event %d: %s", i, e)
		}
	}
	for i := range 2 * maxKinds { // a unit may name as many as it likes
		write(fmt.Sprint(i))
	}
	assert.Equal(t, len(w.find(alerts.Query{})[0].Facts["kinds"].([]any)), maxKinds, "kinds")
	w.set(alerts.Setting{Rule: alerts.UnitAlarm, Off: true, Levels: []alerts.Level{{Severity: alerts.Info}}})
	w.addCar(8)
	require.NoError(t, w.store.writeAlarms(t.Context(), []alarm{{8, 1, telematics.Alarm{Kind: "towing"}}}))
	if found := w.find(alerts.Query{Vehicle: 8}); len(found) > 0 {
		t.Errorf("of an agency that has switched it off: %+v", found)
	}
}

func TestSweep_AFailingRuleStopsNoOther(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.DTCs, []string{"P0420"}, telematics.WarningLamps, []string{"abs"})
	w.exec(`alter table unit_clocks rename to gone`)
	if err := w.store.Sweep(t.Context()); err == nil || !strings.Contains(err.Error(), "evaluate unit_clock") {
		t.Errorf("error %v, want one that names the rule", err)
	}
	w.wants("trouble_code info", "lamp info")
	assert.Equal(t, testutil.ToFloat64(w.store.metrics.failures.WithLabelValues("unit_clock")), 1, "failures counted")
	open := w.store.metrics.open.WithLabelValues("lamp", "info")
	w.store.sweepOnce(t.Context())
	assert.Equal(t, testutil.ToFloat64(open), 1, "open alerts counted")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, w.store.Run(ended))
	assert.Equal(t, testutil.ToFloat64(open), 0, "open alerts of an instance that sweeps no more")
}

// Postgres may have committed although there is no reply.
func TestEvents_AnUnknownResultIsAReset(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.DTCs, []string{"P0420"})
	id := w.add(alerts.LeftOpen, 1, 7, "")
	fails := func(how string) {
		w.exec(`create or replace function fail() returns trigger language plpgsql as $$ begin ` + how + `; return null; end $$`)
	}
	fails(`raise 'refused'`)
	w.exec(`create constraint trigger fail after insert or update on alerts deferrable initially deferred for each row
		execute function fail()`)
	for name, change := range map[string]func() error{
		"a sweep": func() error { return w.store.Sweep(t.Context()) },
		"alarms": func() error {
			return w.store.writeAlarms(t.Context(), []alarm{{7, 1, telematics.Alarm{Kind: "towing"}}})
		},
		"acknowledged": func() error { _, err := w.store.Acknowledge(t.Context(), id, 1, "", by("eva")); return err },
	} {
		fails(`raise 'refused'`)
		if err := change(); err == nil || len(w.events) > 0 {
			t.Errorf("%s that is refused: %v, events %+v, want none", name, err, w.events)
		}
		fails(`set role none; perform pg_terminate_backend(pg_backend_pid())`)
		err := change()
		if err == nil || len(w.events) == 0 || w.events[0].Kind != telematics.ResetEvent {
			t.Errorf("%s: %v, events %+v, want a reset", name, err, w.events)
		}
		w.events = nil
	}
}

// It says what it likes, and the others are written.
func TestAlarms_ARefusedOneIsLostAlone(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.addCar(8)
	w.store.keepWriting(t.Context(), []alarm{{7, 1, telematics.Alarm{Kind: "a\x00"}}, {8, 1, telematics.Alarm{Kind: "towing"}}})
	w.wants("unit_alarm critical")
	assert.Equal(t, testutil.ToFloat64(w.store.metrics.lost), 1, "alarms lost")
}

// What another transaction holds delays nothing else.
func TestSweep_PassesOverLockedRows(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.DTCs, []string{"P0420"})
	w.addCar(8, telematics.DTCs, []string{"P0420"})
	w.sweep()
	tx := storetest.Begin(t, w.db.Pool)
	for _, statement := range []string{
		`select from alerts where vehicle_id = 7 for update`, `select from vehicles for update`, `select from units for update`,
		`select from agencies for update`,
	} {
		storetest.Exec(t, tx, statement)
	}
	for _, id := range []int{7, 8} {
		w.exec(`update snapshots set fields = fields || '{"diagnostics.dtcs": {"v": [], "at": 0}}', updated_at = clock_timestamp()
			where vehicle_id = $1`, id)
	}
	w.finds("trouble_code info")
	require.NoError(t, tx.Rollback())
	w.finds()
}

// Two instances that did so in other orders would wait for each other.
func TestUpdates_LockVehiclesInOrder(t *testing.T) {
	w := newWorld(t)
	w.withPlaces()
	at := 11.7
	var all []position
	var alarms []alarm
	for _, id := range []int{8, 7} {
		w.addCar(id)
		w.sweep()
		all = append(all, position{Vehicle: telematics.VehicleID(id), Agency: 2, Latitude: &at, Longitude: &at})
		alarms = append(alarms, alarm{telematics.VehicleID(id), 1, telematics.Alarm{Kind: "towing"}})
		require.NoError(t, w.store.writeAlarms(t.Context(), alarms[len(alarms)-1:]))
	}
	w.exec(`update vehicles set agency_id = 2`)
	for table, update := range map[string]func() error{
		"alert_inputs": func() error { return w.store.noteAreas(t.Context(), all) },
		"alerts":       func() error { return w.store.writeAlarms(t.Context(), alarms) },
	} {
		other := storetest.Begin(t, w.db.Pool)
		storetest.Exec(t, other, `select from `+table+` where vehicle_id = 7 for update`)
		done := make(chan error)
		go func() { done <- update() }()
		storetest.WaitForLock(t, w.db)
		storetest.Exec(t, other, `select from `+table+` where vehicle_id = 8 for update nowait`)
		require.NoError(t, other.Rollback())
		require.NoError(t, <-done)
	}
}

// The former agency of a vehicle must not see what becomes of it.
func TestSweep_AVehicleThatMovesToAnotherAgencyHasAnotherAlert(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.DTCs, []string{"P0420"})
	w.sweep()
	w.exec(`update vehicles set agency_id = 2`)
	w.sweep()
	w.sweep()
	former, now := w.find(alerts.Query{Agency: 1}), w.find(alerts.Query{Agency: 2})
	if len(former) != 1 || former[0].Cleared.IsZero() || len(now) != 1 || !now[0].Cleared.IsZero() {
		t.Errorf("of the former agency %+v, of the present one %+v", former, now)
	}
	w.book(7, w.now.Add(time.Hour))
	w.exec(`update bookings set agency_id = 2`)
	if former := w.find(alerts.Query{Agency: 1}); former[0].Holder != nil {
		t.Errorf("the former agency sees who has the vehicle: %+v", former[0].Holder)
	}
	if h := w.find(alerts.Query{Agency: 2})[0].Holder; h == nil || h.Client != "anna" || !strings.HasPrefix(h.Reference, "B-") {
		t.Errorf("the present one sees that %+v has the vehicle", h)
	}
	w.exec(`update vehicles set status = 'inactive'`)
	w.finds()
}

// Nothing that a vehicle without a unit could report would end its alerts.
func TestSweep_AVehicleWithoutItsUnitHasNoAlertOfReportedValues(t *testing.T) {
	w := newWorld(t)
	w.addCar(7, telematics.DTCs, []string{"P0420"})
	w.finds("trouble_code info")
	w.exec(`update units set vehicle_id = null`)
	w.finds()
}

func TestAlarms_EndWhenTheirVehicleIsNoneOfTheAgency(t *testing.T) {
	w := newWorld(t)
	write := func() {
		t.Helper()
		require.NoError(t, w.store.writeAlarms(t.Context(), []alarm{{7, 1, telematics.Alarm{Kind: "towing"}}}))
	}
	write() // of a vehicle that is not on record
	w.wants()
	w.addCar(7)
	for _, end := range []string{`update vehicles set status = 'inactive'`, `update vehicles set agency_id = 2`} {
		w.exec(`update vehicles set status = 'available', agency_id = 1`)
		w.advance(time.Hour)
		w.hear()
		write()
		w.finds("unit_alarm critical")
		w.exec(end)
		w.finds()
	}
	w.exec(`update vehicles set agency_id = 1`)
	w.advance(time.Hour)
	write()
	w.exec(`update vehicles set agency_id = 2`)
	w.takeEvents()
	// No sweep has come between.
	require.NoError(t, w.store.writeAlarms(t.Context(), []alarm{{7, 2, telematics.Alarm{Kind: "jamming"}}}))
	assert.EqualSlices(t, w.takeEvents(), []string{"cleared unit_alarm 7", "opened unit_alarm 7"}, "events")
	if found := w.find(alerts.Query{Agency: 2}); len(found) != 1 || fmt.Sprint(found[0].Facts["kinds"]) != "[jamming]" {
		t.Errorf("of the agency that has it now: %+v", found)
	}
	w.exec(`update vehicles set agency_id = 1`)
	w.advance(time.Hour)
	w.sweep()
	w.takeEvents()
	write() // of the kind that the former agency had a moment ago
	w.exec(`update vehicles set agency_id = 2`)
	require.NoError(t, w.store.writeAlarms(t.Context(), []alarm{{7, 2, telematics.Alarm{Kind: "towing"}}}))
	assert.EqualSlices(t, w.takeEvents(), []string{"opened unit_alarm 7", "cleared unit_alarm 7", "opened unit_alarm 7"}, "events")
	w.exec(`update vehicles set status = 'inactive'`)
	w.finds()
	w.advance(time.Hour)
	write()
	w.wants()
}

// A state that no report can give stops no other vehicle.
func TestSweep_ReadsWhatIsUnsoundAsUnknown(t *testing.T) {
	w := newWorld(t)
	w.addCar(7)
	w.addCar(8, telematics.DTCs, []string{"P0420"})
	w.exec(`update snapshots set updated_at = clock_timestamp(), fields = fields || '{"telemetry.is_locked": {"v": "x", "at": 0},
		"location.timestamp": {"v": "yesterday", "at": 0}, "telemetry.onboard_voltage_v": {"v": "low", "at": 0}}' where vehicle_id = 7`)
	w.finds("trouble_code info")
}

// The end of an alarm needs no person.
func TestAlarms_AnEndOpensNone(t *testing.T) {
	w := newWorld(t)
	w.store.Alarmed([]telematics.Change{{Vehicle: 7, Agency: 1, Alarms: []telematics.Alarm{
		{Kind: "alarm.stopped"}, {Kind: "batt.12v.recovered"}, {Kind: "alarm.sounding"},
	}}})
	if batch := w.store.gather(nil); len(batch) != 1 || batch[0].Kind != "alarm.sounding" {
		t.Errorf("to be written: %+v", batch)
	}
}
