package service_test

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/alerts"
	"motorpool/internal/app"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/telematics"
)

// listedAlert has fields of an alert that the API shows.
type listedAlert struct {
	ID             string
	Rule           string
	Severity       string
	VehicleID      int64  `json:"vehicle_id"`
	AcknowledgedBy string `json:"acknowledged_by"`
	Facts          map[string]any
}

func (i *instance) openAlerts() (found []listedAlert) {
	i.Helper()
	i.get("/api/v1/admin/alerts?state=open", &found)
	slices.Reverse(found)
	return found
}

// awaitAlerts waits until these alerts are open, as "rule vehicle".
func (i *instance) awaitAlerts(want ...string) (found []listedAlert) {
	i.Helper()
	var got []string
	defer func() {
		if i.Failed() {
			i.Logf("open are %v", got)
		}
	}()
	i.eventually(20*time.Second, fmt.Sprintf("open alerts are %v", want), func() bool {
		found, got = i.openAlerts(), nil
		for _, a := range found {
			got = append(got, fmt.Sprintf("%s %d", a.Rule, a.VehicleID))
		}
		slices.Sort(got)
		return slices.Equal(got, want)
	})
	return found
}

// alertCase is how a rule comes to hold for a car, and how it ends.
type alertCase struct {
	car           int // of agency 2 if it is even
	rules         []alerts.Rule
	begins, mends func(*alertRound)
}

// alertRound is a car of a case.
type alertRound struct {
	*instance
	db  *pg.DB
	n   int
	car *simulator.Car
}

func (r *alertRound) exec(statement string, args ...any) {
	r.Helper()
	if _, err := r.db.Pool.Exec(statement, args...); err != nil {
		r.Error(err)
	}
}

// done sends a request of an administrator that must succeed.
func (r *alertRound) done(method, path, body string) {
	r.Helper()
	if a := r.send(method, "/api/v1/admin/"+path, body); a.status >= 300 {
		r.Errorf("%s %s %s: %d %+v", method, path, body, a.status, a.Error)
	}
}

func (r *alertRound) area(kind, geometry string) {
	r.done(http.MethodPut, "agencies/2/areas/"+kind, fmt.Sprintf(`{"kind":%q,"geometry":%s}`, kind, geometry))
}

// parked waits until it is noted where the car is parked.
func (r *alertRound) parked() {
	r.eventually(20*time.Second, "the car is parked", func() (is bool) {
		_ = r.db.Pool.Get(&is, `select parked_at is not null from alert_inputs where vehicle_id = $1`, r.n)
		return is
	})
}

// body returns a case in which what the car reports differs from what a healthy one does.
func body(car int, rule alerts.Rule, begins, mends func(*simulator.Body)) alertCase {
	of := func(edit func(*simulator.Body)) func(*alertRound) { return func(r *alertRound) { r.car.Change(edit) } }
	return alertCase{car, []alerts.Rule{rule}, of(begins), of(mends)}
}

// orders returns a step in which a car with faults gets commands, one after the other.
func orders(f simulator.Faults, actions ...telematics.Action) func(*alertRound) {
	return func(r *alertRound) {
		r.car.SetFaults(f)
		for _, action := range actions {
			r.control(r.n, action)
		}
	}
}

const (
	outsideCar, forbiddenCar = 10, 12
	square                   = `{"type":"Polygon","coordinates":[[[11,%[1]v],[12,%[1]v],[12,%[2]v],[11,%[2]v],[11,%[1]v]]]}`
)

// elsewhere are the rules that no case has. A car of protocol v1 announces no alarms, and its
// answers name their commands, so no report contradicts them (TestOVMS_…, package store/alerts);
// silence takes minutes.
var elsewhere = []alerts.Rule{alerts.UnitAlarm, alerts.CommandContradicted, alerts.Silent}

// alertCases are the other rules. An area is of all cars of its agency.
var alertCases = []alertCase{
	body(1, alerts.Battery12VLow, func(b *simulator.Body) { b.OnboardV = 11.5 }, func(b *simulator.Body) { b.OnboardV = 12.7 }),
	body(2, alerts.EnergyLow, func(b *simulator.Body) { b.EnergyPercent = 5 }, func(b *simulator.Body) { b.EnergyPercent = 80 }),
	body(3, alerts.IgnitionWithoutBooking, func(b *simulator.Body) { b.Ignition = true }, func(b *simulator.Body) { b.Ignition = false }),
	body(4, alerts.LeftOpen, func(b *simulator.Body) { b.Locked, b.Opened = false, []telematics.Field{telematics.DoorTrunk} },
		func(b *simulator.Body) { b.Locked, b.Opened = true, nil }),
	body(5, alerts.TroubleCode, func(b *simulator.Body) { b.DTCs = []string{"P0420"} }, func(b *simulator.Body) { b.DTCs = nil }),
	body(6, alerts.Lamp, func(b *simulator.Body) { b.WarningLamps = []string{"stop"} }, func(b *simulator.Body) { b.WarningLamps = nil }),
	body(7, alerts.ServiceDue, func(b *simulator.Body) { b.ServiceDueKm = -10 }, func(b *simulator.Body) { b.ServiceDueKm = 9000 }),
	{
		8, []alerts.Rule{alerts.MovedWithoutBooking},
		func(r *alertRound) { r.parked(); r.car.Change(func(b *simulator.Body) { b.Latitude += 0.003 }) },
		func(r *alertRound) { r.car.Change(func(b *simulator.Body) { b.Latitude -= 0.003 }) },
	},
	{
		9, []alerts.Rule{alerts.UnitClock},
		func(r *alertRound) { r.car.SetClock(simulator.Clock{Skew: 20 * time.Second}) },
		func(r *alertRound) { r.car.SetClock(simulator.Clock{}) },
	},
	{
		outsideCar, []alerts.Rule{alerts.OutsideArea},
		func(r *alertRound) { r.area("operating", fmt.Sprintf(square, 47, 50)) },
		func(r *alertRound) { r.done(http.MethodDelete, "agencies/2/areas/operating", "") },
	},
	{
		forbiddenCar, []alerts.Rule{alerts.ParkedForbidden},
		func(r *alertRound) { r.area("no_parking", fmt.Sprintf(square, 48.9, 49.1)) },
		func(r *alertRound) { r.done(http.MethodDelete, "agencies/2/areas/no_parking", "") },
	},
	{
		11, []alerts.Rule{alerts.UnitRejects},
		orders(simulator.Faults{Refuse: simulator.Always}, telematics.Lock), orders(simulator.Faults{}, telematics.Lock),
	},
	{
		13, []alerts.Rule{alerts.CommandUnknown, alerts.Deaf},
		orders(simulator.Faults{Silent: true}, telematics.Lock, telematics.Unlock, telematics.Lock),
		orders(simulator.Faults{}, telematics.Lock),
	},
	{
		15, []alerts.Rule{alerts.ChargeFailed, alerts.Overdue, alerts.StartedNotOpened},
		func(r *alertRound) { // no client can book what is over
			r.parked()
			r.exec(`insert into stations (id, agency_id, name, address, latitude, longitude) values (1, 1, '', '', 0, 0)`)
			r.exec(`insert into clients (agency_id, subject) values (1, 'anna')`)
			r.exec(`insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id,
					start_at, end_at, started_at, currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
				select 'B-1', 'active', 1, id, $1, 1, 1, now() - interval '2 hours', now() - interval '1 hour', now(), 'EUR', 0, 0, 0,
					0, 0, 0, now() - interval '2 hours' from clients`, r.n)
			r.exec(`insert into charges (id, booking_id, kind, number, state, currency, amount, created_at)
				select gen_random_uuid(), id, 'fee', 1, 'failed', 'EUR', 100, now() from bookings`)
		},
		func(r *alertRound) {
			r.exec(`delete from charges`)
			r.exec(`update bookings set state = 'completed', ended_at = now()`)
		},
	},
	{
		0, []alerts.Rule{alerts.MassAccess},
		func(r *alertRound) {
			for _, vehicle := range []int{1, 3} {
				r.get(fmt.Sprintf("/api/v1/admin/vehicles/%d/status", vehicle), nil)
			}
		},
		func(r *alertRound) { r.done(http.MethodPut, "agencies/1/alert-rules", `{"rules":[]}`) },
	},
}

// Each rule but those of elsewhere opens an alert, which restarts of every instance leave open, and
// which is acknowledged and cleared. An Alertmanager gets them.
func TestAlerts_OfEachRuleStayOverARestartOfEveryInstance(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.AlertmanagerServer)
	s := embeddedStack(t, 15)
	s.interval = time.Second
	db, err := pg.New(pg.Config{URL: s.database})
	s.must(err)
	t.Cleanup(func() { _ = db.Close() })
	alertmanager, err := devstack.StartAlertmanager(s.dir, deployed+"prometheus/alertmanager.yml")
	s.must(err)
	t.Cleanup(func() { s.must(alertmanager.Close()) })
	configure := func(c *app.Config) { c.AlertmanagerURL, c.Budget = app.Secret(alertmanager.URL()), 2*time.Second }
	notified := func(want ...string) {
		t.Helper()
		s.eventually(20*time.Second, fmt.Sprintf("Alertmanager has %v", want), func() bool {
			var got []string
			var list []struct{ Labels map[string]string }
			s.fetchJSON(alertmanager.URL()+"/api/v2/alerts", &list)
			for _, a := range list {
				got = append(got, a.Labels["alertname"]+" "+cmp.Or(a.Labels["vehicle"], "0"))
			}
			slices.Sort(got)
			return slices.Equal(got, want)
		})
	}

	i := s.serve(configure)
	var rules []string
	missing := map[alerts.Rule]bool{}
	for _, set := range alerts.Defaults() {
		missing[set.Rule] = !slices.Contains(elsewhere, set.Rule)
		levels := ``
		if set.Rule == alerts.MassAccess {
			levels = `,"levels":[{"severity":"critical","limit":1}]`
		}
		rules = append(rules, fmt.Sprintf(`{"rule":%q,"for_s":0%s}`, set.Rule, levels))
	}
	round := alertRound{instance: i, db: db}
	for agency := 1; agency <= 2; agency++ {
		round.done(http.MethodPut, fmt.Sprintf("agencies/%d/alert-rules", agency), `{"rules":[`+strings.Join(rules, ",")+`]}`)
	}
	fleet := s.drive(nil, func(id telematics.VehicleID) simulator.Profile {
		at := simulator.Point{Latitude: 48.13, Longitude: 11.5}
		switch id {
		case outsideCar:
			at.Latitude = 55
		case forbiddenCar:
			at.Latitude = 49
		}
		b := simulator.Hatchback(at)
		b.DTCs, b.WarningLamps = nil, nil
		return simulator.Profile{Actions: simulator.AllActions, Body: b}
	})
	var want []string
	each := func(step func(alertCase, *alertRound)) {
		for _, c := range alertCases {
			step(c, &alertRound{i, db, c.car, fleet.Car(telematics.Unit(fmt.Sprintf("car-%d", c.car)))})
		}
	}
	each(func(c alertCase, r *alertRound) {
		for _, rule := range c.rules {
			missing[rule] = false
			want = append(want, fmt.Sprintf("%s %d", rule, c.car))
		}
		c.begins(r)
	})
	for rule, is := range missing {
		if is {
			t.Errorf("no case has the rule %s", rule)
		}
	}
	slices.Sort(want)
	seldom := fmt.Sprintf("%s 0", alerts.MassAccess) // once a minute, and after a start
	i.awaitAlerts(slices.DeleteFunc(slices.Clone(want), func(alert string) bool { return alert == seldom })...)
	i.stop()
	i = s.serve(configure)
	opened := i.awaitAlerts(want...)
	notified(want...)
	i.eventually(10*time.Second, "open alerts are counted", func() bool {
		return i.metric(`motorpool_alerts_open{rule="left_open", severity="warning"}`) == 1
	})

	i.stop()
	i = s.serve(configure)
	swept := func() bool { return i.metric("motorpool_alerts_swept_timestamp_seconds") > 0 }
	i.eventually(30*time.Second, "alerts are evaluated again", swept)
	if again := i.openAlerts(); !slices.EqualFunc(again, opened, func(a, b listedAlert) bool { return a.ID == b.ID }) {
		t.Errorf("open after the restart: %+v, want %+v", again, opened)
	}
	// Not the one who looked at many cars.
	colleague := s.token(telematics.Actor{Role: telematics.Admin, Subject: "admin-8"})
	for _, a := range opened {
		r := i.askWith(colleague, http.MethodPost, "/api/v1/admin/alerts/"+a.ID+"/acknowledge", `{"note":"seen"}`)
		if r.status != http.StatusOK {
			t.Errorf("acknowledge %s: %+v", a.Rule, r)
		}
	}
	each(func(c alertCase, r *alertRound) { c.mends(r) })
	i.stop()
	i = s.serve(configure)
	i.awaitAlerts()
	notified()
	var cleared []listedAlert
	i.get("/api/v1/admin/alerts?state=cleared", &cleared)
	if len(cleared) != len(want) || slices.ContainsFunc(cleared, func(a listedAlert) bool { return a.AcknowledgedBy != "admin-8" }) {
		t.Errorf("cleared: %+v", cleared)
	}
}
