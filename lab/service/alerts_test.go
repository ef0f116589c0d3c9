package service_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/alerts"
	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/sandbox"
	vans "motorpool/simulator/teltonika"
	"motorpool/telematics"
	"motorpool/telematics/teltonika"
)

// listedAlert has fields of an alert that the API shows.
type listedAlert struct {
	ID             string
	Rule           string
	Severity       string
	VehicleID      int64  `json:"vehicle_id"`
	AcknowledgedBy string `json:"acknowledged_by"`
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
			i.Logf("waited 20s for: other alerts than %v", got)
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
	client *renter
	n      int
	car    *simulator.Car
	van    *vans.Unit // of a car with another unit; nil: of the others
}

// renter is a client with a booking.
type renter struct {
	customer
	booking int64
}

// done sends a request of an administrator that must succeed.
func (r *alertRound) done(method, path, body string) {
	r.Helper()
	if a := r.asAdmin(method, "/api/v1/admin/"+path, body); a.status >= 300 {
		r.Errorf("%s %s %s: %d %s", method, path, body, a.status, a.text)
	}
}

func (r *alertRound) area(kind, geometry string) {
	r.done(http.MethodPut, "agencies/2/areas/"+kind, fmt.Sprintf(`{"kind":%q,"geometry":%s}`, kind, geometry))
}

// parked waits until it is noted where the car is parked.
func (r *alertRound) parked() {
	r.eventually(20*time.Second, "the car is parked", func() bool {
		return r.client.rows(`select count(*) from alert_inputs where vehicle_id = $1 and parked_at is not null`, r.n) == 1
	})
}

// open waits until the car has reported that it is not locked: where that was not known before, no
// report confirms or contradicts a command.
func (r *alertRound) open() {
	r.eventually(20*time.Second, "the car is open", func() bool {
		return r.client.rows(
			`select count(*) from snapshots where vehicle_id = $1 and fields->'telemetry.is_locked'->>'v' = 'false'`, r.n,
		) == 1
	})
}

// order sends a command, which ends after a wait in seconds, until the unit has answered it in a
// way: a busy machine may not answer in time.
func (r *alertRound) order(action telematics.Action, wait int, answered func(answer) bool) {
	var last answer
	defer func() {
		if r.Failed() {
			r.Logf("waited 20s for: another answer to %s of vehicle %d than %d %s", action, r.n, last.status, last.text)
		}
	}()
	r.eventually(20*time.Second, "the unit answers a command", func() bool {
		last = r.control(r.n, action, "Prefer", fmt.Sprintf("wait=%d", wait))
		return answered(last)
	})
}

func executed(r answer) bool { return r.status == http.StatusOK }

func rejected(r answer) bool { return r.code() == "command_rejected" }

func unanswered(r answer) bool { return r.code() == "command_timeout" && r.word("error.detail") == "" }

func accepted(r answer) bool { return r.word("error.detail") == telematics.AcceptedByUnit }

// changeVan changes the faults of a van's unit.
func (r *alertRound) changeVan(f vans.Faults) {
	r.van.Do(r.Context(), func(_ *simulator.Body, faults *vans.Faults) { *faults = f })
}

// body returns a case in which what the car reports differs from what a healthy one does.
func body(car int, rule alerts.Rule, begins, mends func(*simulator.Body)) alertCase {
	of := func(edit func(*simulator.Body)) func(*alertRound) { return func(r *alertRound) { r.car.Change(edit) } }
	return alertCase{car, []alerts.Rule{rule}, of(begins), of(mends)}
}

// orders returns a step in which a car with faults gets commands, one after the other.
func orders(f simulator.Faults, wait int, answered func(answer) bool, actions ...telematics.Action) func(*alertRound) {
	return func(r *alertRound) {
		r.car.SetFaults(f)
		for _, action := range actions {
			r.order(action, wait, answered)
		}
	}
}

const (
	silentVan, outsideCar, forbiddenCar, stuckVan = 4, 10, 12, 14

	square = `{"type":"Polygon","coordinates":[[[11,%[1]v],[12,%[1]v],[12,%[2]v],[11,%[2]v],[11,%[1]v]]]}`
)

// alertCases have all rules. An area is of all cars of its agency.
var alertCases = []alertCase{
	{ // First: a report contradicts a command 20 s after the unit has accepted it.
		stuckVan, []alerts.Rule{alerts.CommandContradicted, alerts.LeftOpen, alerts.UnitAlarm},
		func(r *alertRound) {
			r.open()
			r.order(telematics.Lock, 5, accepted)
		},
		func(r *alertRound) { r.changeVan(vans.Faults{}); r.order(telematics.Lock, 20, executed) },
	},
	{
		silentVan, []alerts.Rule{alerts.Silent},
		func(r *alertRound) { r.changeVan(vans.Faults{Offline: true}) }, func(r *alertRound) { r.changeVan(vans.Faults{}) },
	},
	body(1, alerts.Battery12VLow, func(b *simulator.Body) { b.OnboardV = 11.5 }, func(b *simulator.Body) { b.OnboardV = 12.7 }),
	body(2, alerts.EnergyLow, func(b *simulator.Body) { b.EnergyPercent = 5 }, func(b *simulator.Body) { b.EnergyPercent = 80 }),
	body(3, alerts.IgnitionWithoutBooking, func(b *simulator.Body) { b.Ignition = true }, func(b *simulator.Body) { b.Ignition = false }),
	body(5, alerts.TroubleCode, func(b *simulator.Body) { b.DTCs = []string{"P0420"} }, func(b *simulator.Body) { b.DTCs = nil }),
	body(6, alerts.Lamp, func(b *simulator.Body) { b.WarningLamps = []string{"stop"} }, func(b *simulator.Body) { b.WarningLamps = nil }),
	body(7, alerts.ServiceDue, func(b *simulator.Body) { b.ServiceDueKm = -10 }, func(b *simulator.Body) { b.ServiceDueKm = 9000 }),
	{
		8, []alerts.Rule{alerts.MovedWithoutBooking},
		func(r *alertRound) { // it is towed
			r.parked()
			r.car.Change(func(b *simulator.Body) { b.Latitude, b.SpeedKmh = b.Latitude+0.003, 2*telematics.MovingKmh })
		},
		func(r *alertRound) {
			r.car.Change(func(b *simulator.Body) { b.Latitude, b.Longitude, b.SpeedKmh = 48.13, 11.5, 0 })
		},
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
		orders(simulator.Faults{Refuse: simulator.Always}, 20, rejected, telematics.Lock),
		orders(simulator.Faults{}, 20, executed, telematics.Lock),
	},
	{
		13, []alerts.Rule{alerts.CommandUnknown, alerts.Deaf},
		orders(simulator.Faults{Silent: true}, 2, unanswered, telematics.Lock, telematics.Unlock, telematics.Lock),
		orders(simulator.Faults{}, 20, executed, telematics.Lock),
	},
	{
		15, []alerts.Rule{alerts.ChargeFailed, alerts.Overdue, alerts.StartedNotOpened},
		func(r *alertRound) {
			r.parked()
			c := r.client
			c.add(r.instance, "pm_card_visa", true)
			r.must(c.processor.SetCard(c.processor.Attached()[0], sandbox.Behaviour{Decline: "stolen_card"}))
			c.booking = c.book(r.instance, r.n, fromNow(-time.Minute))
			r.start(c.booking)
			_, err := c.db.Exec(`update bookings set end_at = clock_timestamp() where id = $1`, c.booking)
			r.must(err)
			// What a stop of the instance interrupts is tried a minute later.
			c.awaitPayment(r.instance, c.booking, "failed")
		},
		func(r *alertRound) {
			c := r.client
			c.add(r.instance, "pm_card_mastercard", true)
			c.awaitPayment(r.instance, c.booking, "paid")
			r.eventually(10*time.Second, "the deposit is held", func() bool {
				return r.charge(c.booking, "deposit")["state"] == "authorized"
			})
			r.done(http.MethodPost, fmt.Sprintf("bookings/%d/end", c.booking), "")
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

// withVans gives two vehicles Teltonika units, which have no last will.
func (s *stack) withVans() {
	for _, id := range []int{silentVan, stuckVan} {
		v := &s.fleet.Vehicles[id-1]
		v.Protocol, v.Actions = teltonika.Protocol, []telematics.Action{telematics.Lock}
		v.Installation = telematics.Installation{"lock": "output 1 pulse 1s", "lock-signal": "can"}
	}
}

// driveVans runs the vans until the test ends. They do not lock, although their units say so. One
// is open, and is towed away a second later.
func (s *stack) driveVans() map[int]*vans.Unit {
	s.Helper()
	driven := map[int]*vans.Unit{}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	s.Cleanup(func() { stop(); running.Wait() })
	for _, id := range []int{silentVan, stuckVan} {
		unit := s.fleet.Vehicles[id-1].Unit
		c := vans.Config{
			Unit: unit, Password: mosquitto.UnitPassword(unitSecret, string(unit)), Broker: s.units,
			Body:   simulator.Van(simulator.Point{Latitude: 48.13, Longitude: 11.5}),
			Faults: vans.Faults{Stuck: true}, Stopped: 2 * time.Second, Reconnect: time.Second,
		}
		if id == stuckVan {
			c.Body.Locked, c.Day = false, simulator.NewDay(3*time.Hour-time.Second)
		}
		van := vans.New(c)
		driven[id] = van
		running.Go(func() { _ = van.Run(ctx) }) // it returns nil
	}
	return driven
}

// Each rule opens an alert by what a vehicle, a client, staff or a bank does. Restarts of every
// instance leave it open, and it is acknowledged and cleared. An Alertmanager gets it.
func TestAlerts_OfEachRuleStayOverARestartOfEveryInstance(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.AlertmanagerServer)
	s := embeddedStack(t, 15)
	s.interval = time.Second
	s.withVans()
	rent := s.rent()
	client := &renter{customer: rent.newCustomer()}
	alertmanager, err := devstack.StartAlertmanager(s.dir, deployed+"prometheus/alertmanager.yml")
	s.must(err)
	t.Cleanup(func() { s.must(alertmanager.Close()) })
	configure := func(c *app.Config) {
		rent.paid(c)
		c.AlertmanagerURL = app.Secret(alertmanager.URL())
	}
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
	worst := map[alerts.Rule]alerts.Severity{}
	for _, set := range alerts.Defaults() {
		worst[set.Rule] = set.Levels[len(set.Levels)-1].Severity
		levels := ``
		if set.Rule == alerts.MassAccess {
			levels = `,"levels":[{"severity":"critical","limit":1}]`
		}
		rules = append(rules, fmt.Sprintf(`{"rule":%q,"for_s":0%s}`, set.Rule, levels))
	}
	round := alertRound{instance: i}
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
	driven := s.driveVans()
	var want []string
	each := func(step func(alertCase, *alertRound)) {
		for _, c := range alertCases {
			step(c, &alertRound{i, client, c.car, fleet.Car(telematics.Unit(fmt.Sprintf("car-%d", c.car))), driven[c.car]})
		}
	}
	each(func(c alertCase, r *alertRound) {
		for _, rule := range c.rules {
			want = append(want, fmt.Sprintf("%s %d", rule, c.car))
		}
		c.begins(r)
	})
	slices.Sort(want)
	i.stop()
	// A unit is silent after 6 minutes at the earliest: only the time of its last message is moved.
	_, err = rent.db.Exec(`update units set last_seen = last_seen - interval '6 minutes' where vehicle_id = $1`, silentVan)
	s.must(err)
	i = s.serve(configure)
	opened := i.awaitAlerts(want...)
	for _, a := range opened {
		if severity := worst[alerts.Rule(a.Rule)]; a.Severity != string(severity) {
			t.Errorf("%s is %s, want %s", a.Rule, a.Severity, severity)
		}
		delete(worst, alerts.Rule(a.Rule))
	}
	if len(worst) > 0 {
		t.Errorf("no case has the rules %v", worst)
	}

	i.stop()
	i = s.serve(configure)
	swept := func() int64 { return i.metric("motorpool_alerts_swept_timestamp_seconds") }
	began := swept()
	i.eventually(30*time.Second, "alerts are evaluated again", func() bool { return swept() > began })
	if again := i.openAlerts(); !slices.EqualFunc(again, opened, func(a, b listedAlert) bool { return a.ID == b.ID }) {
		t.Errorf("open after the restart: %+v, want %+v", again, opened)
	}
	notified(want...)
	assert.Equal(t, i.metric(`motorpool_alerts_open{rule="left_open", severity="warning"}`), 1, "alerts counted")
	// Not the one who looked at many cars.
	colleague := s.token(telematics.Actor{Role: telematics.Admin, Subject: "admin-8"})
	for _, a := range opened {
		r := i.askWith(colleague, http.MethodPost, "/api/v1/admin/alerts/"+a.ID+"/acknowledge", `{"note":"seen"}`)
		r.wants(http.StatusOK, "")
	}
	each(func(c alertCase, r *alertRound) { c.mends(r) })
	i.stop()
	i = s.serve(configure)
	i.awaitAlerts()
	var cleared []listedAlert
	i.get("/api/v1/admin/alerts?state=cleared", &cleared)
	// A command is unknown until a report contradicts it.
	cleared = slices.DeleteFunc(cleared, func(a listedAlert) bool { return a.Rule == "command_unknown" && a.VehicleID == stuckVan })
	if len(cleared) != len(want) || slices.ContainsFunc(cleared, func(a listedAlert) bool { return a.AcknowledgedBy != "admin-8" }) {
		t.Errorf("cleared: %+v", cleared)
	}
	i.stop()
	notified()
}
