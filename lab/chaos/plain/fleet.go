// Package plain is the rounds of a plain fleet: vehicles 1 to n of one agency, whose cars execute
// each command. Each has one caller, who locks and unlocks it in turns, while a part of the world
// fails. Then laws compare the callers' answers, Postgres and the flight recorders.
package plain

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

// instances is how many instances of the service each of these rounds has by default.
const instances = 2

// fleet is the world of a round.
type fleet struct {
	runner.Config
	*world.World

	token  string // of an administrator who may command all vehicles
	file   vehicles.FleetFile
	client func(telematics.VehicleID) *http.Client // of its caller

	recorder simulator.Recorder // of all cars
	made     runner.Log[call]
	evidence
}

func newFleet(w *world.World, c runner.Config) *fleet {
	f := &fleet{Config: c, World: w, client: func(telematics.VehicleID) *http.Client { return world.Callers }}
	f.file.Agencies = []telematics.Agency{{ID: 1, Code: "CHAOS", Name: "Chaos"}}
	for id := 1; id <= c.Vehicles; id++ {
		f.file.Vehicles = append(f.file.Vehicles, world.Vehicle(id, 1, unitOf(telematics.VehicleID(id))))
	}
	return f
}

func unitOf(id telematics.VehicleID) telematics.Unit {
	return telematics.Unit(fmt.Sprintf("car-%d", id))
}

// startServers starts Mosquitto, Redis and Postgres. The program under test migrates the schema, so
// that an older one can be tested.
func (f *fleet) startServers(ctx context.Context) (err error) {
	if f.token, err = f.Token(telematics.Actor{Subject: "chaos", Role: telematics.Admin}, auth.ScopeAllAgencies); err != nil {
		return err
	}
	return f.StartServers(ctx, world.ServersConfig{Units: world.Units(f.file.Vehicles)})
}

// startInstances starts instances, and returns when they are ready.
func (f *fleet) startInstances(ctx context.Context, n int, c world.InstanceConfig) error {
	for range n {
		if _, err := f.StartInstance(ctx, c); err != nil {
			return err
		}
	}
	return f.Ready(ctx)
}

func (f *fleet) importVehicles(ctx context.Context) error { return f.Import(ctx, f.file) }

// cars is how cars behave.
type cars struct {
	latency  simulator.Latency
	interval time.Duration   // between two reports. Defaults to the simulator's
	radio    simulator.Radio // Defaults to MQTT at the world's Mosquitto
}

// startCars runs the cars until Close, and returns when all are connected.
func (f *fleet) startCars(ctx context.Context, c cars) error {
	var all []simulator.Config
	for _, v := range f.file.Vehicles {
		all = append(all, simulator.Config{
			Unit: v.Unit, Password: f.UnitPassword(v.Unit), Broker: f.Mosquitto.UnitsURL(), Radio: c.radio,
			Profile: simulator.Profile{Actions: simulator.AllActions, Latency: c.latency},
		})
	}
	running := f.StartCars(ctx, f.Fail, simulator.FleetConfig{
		Keyring: f.Signing.Keyring(), Recorder: &f.recorder, Seed: f.Seed, Interval: c.interval,
	}, all...)
	return world.AllConnected(ctx, running)
}

const (
	// callTimeout is longer than any command may take.
	callTimeout = telematics.MaxBudget + 10*time.Second
	// executed is the answer to a command that the vehicle executed.
	executed = "200"
	// noAnswer is in the place of an answer that did not come.
	noAnswer = "no answer"
)

// call is a command to a vehicle, as its caller saw it.
type call struct {
	vehicle telematics.VehicleID
	begin   time.Time
	took    time.Duration
	answer  string               // status, and the code of the error
	reason  string               // of an error, or why there is no answer
	outcome telematics.Outcome   // as answered; empty: not said
	command telematics.CommandID // zero: the answer names none
}

// lockAndUnlock lets the caller of each vehicle lock and unlock it in turns, concurrently. Before
// each call, next returns where it is made, or that it is not; it may wait.
func (f *fleet) lockAndUnlock(ctx context.Context, next func(id telematics.VehicleID, n int) (url string, goesOn bool)) {
	var callers sync.WaitGroup
	for _, v := range f.file.Vehicles {
		callers.Go(func() {
			client, actions := f.client(v.ID), []telematics.Action{telematics.Lock, telematics.Unlock}
			for n := 0; ctx.Err() == nil; n++ {
				url, goesOn := next(v.ID, n)
				if !goesOn {
					return
				}
				f.made.Add(f.call(ctx, client, url, v.ID, actions[n%2]))
			}
		})
	}
	callers.Wait()
	f.calls = f.made.All()
}

// call sends a command, and returns within callTimeout.
func (f *fleet) call(
	ctx context.Context, client *http.Client, url string, id telematics.VehicleID, action telematics.Action,
) (c call) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c = call{vehicle: id, begin: time.Now(), answer: noAnswer}
	defer func() { c.took = time.Since(c.begin) }()
	var body struct {
		Data  struct{ ID telematics.CommandID }
		Error struct {
			Code, Reason string
			Outcome      telematics.Outcome
			CommandID    telematics.CommandID `json:"command_id"`
		}
	}
	status, _, err := world.Request{
		URL: fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", url, id, action), Token: f.token,
	}.Do(ctx, client, &body)
	switch e := body.Error; {
	case err != nil:
		c.reason = err.Error()
	case status == http.StatusOK:
		c.answer, c.outcome, c.command = executed, telematics.Executed, body.Data.ID
	default:
		c.answer, c.reason = strings.TrimSpace(fmt.Sprintf("%d %s", status, e.Code)), e.Reason
		c.outcome, c.command = e.Outcome, e.CommandID
	}
	return c
}

// summary prints what the rounds have in common, and what facts prints.
func (f *fleet) summary(took time.Duration, facts func(t io.Writer)) func(io.Writer) {
	return func(t io.Writer) {
		fmt.Fprintf(t, "\nseed\t%d\n", f.Seed)
		fmt.Fprintf(t, "time\t%v\n", took.Round(time.Second))
		facts(t)
		verdict.WriteCounts(t, "answer", "calls", verdict.Count(f.calls, func(c call) string {
			if c.answer == noAnswer {
				return noAnswer
			}
			return strings.TrimSpace(c.answer + " " + c.reason)
		}))
	}
}

// executions counts the calls that were answered as executed.
func (e *evidence) executions() (n int) {
	for _, c := range e.calls {
		if c.answer == executed {
			n++
		}
	}
	return n
}
