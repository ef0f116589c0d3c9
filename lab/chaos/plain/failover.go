package plain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"motorpool/lab/chaos/alerts"
	"motorpool/lab/chaos/network"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/telematics"
)

const (
	// pace is the interval between two commands to one vehicle, behind the replication lag of the
	// standby: within that, fewer are executed than a report repeats, eight [TEL-3].
	pace   = 500 * time.Millisecond
	behind = 3 * time.Second
	// loadFor is how long there is load before the failover, and after it.
	loadFor = 5 * time.Second
	// storedWithin bounds how long answers to lost commands may take to be stored.
	storedWithin = 30 * time.Second
	// reportInterval is that of a car, which repeats its last eight results in each report.
	reportInterval = time.Second
)

// FailoverAlerts are the alerts of a failover.
var FailoverAlerts = alerts.Of{
	Must: "MotorpoolAnswersUnrecorded",
	May:  "MotorpoolNotReady MotorpoolOutboxGrowing MotorpoolStandbyAsynchronous" + alerts.Failing,
}

var failoverLaws = []law{inOrder, grows, notForgotten, loggedOnce}

// failover is the world of a failover that loses commits.
type failover struct {
	*fleet
	standby      *network.Standby
	watch        *alerts.Watch // nil: none
	at, answered time.Time     // when it began, and when the last call was answered
	fired        map[string]time.Time
}

// Failover kills Postgres's primary while commands run, and promotes an asynchronous standby that
// is seconds behind: no vehicle refuses a command as out of order, and every executed command is on
// record, or its answer is stored as one to an unrecorded command. It has 40 vehicles and two
// instances by default.
//
//	callers ─ instance 0, 1 ─ line ─ primary ─ line ─ standby
//	               └─ Mosquitto ─ cars, with a flight recorder
func Failover(w *world.World, c runner.Config) (runner.Round, error) {
	c.Vehicles, c.Instances = cmp.Or(c.Vehicles, 40), cmp.Or(c.Instances, instances)
	r := &failover{fleet: newFleet(w, c)}
	return runner.Round{
		Starts: fmt.Sprintf("servers, a standby, %d instances and %d cars", c.Instances, c.Vehicles),
		World: []world.Step{
			{What: "servers", Do: r.startServers}, {What: "standby", Do: r.startStandby}, {What: "instances", Do: r.startBehindLine},
			{What: "vehicles", Do: r.importVehicles}, {What: "cars", Do: r.startReporting}, {What: "alerts", Do: r.watchAlerts},
		},
		Faults: r.failOver, Check: r.check,
	}, nil
}

func (r *failover) startStandby(ctx context.Context) (err error) {
	r.standby, err = network.StartStandby(ctx, r.World, false)
	return err
}

func (r *failover) startBehindLine(ctx context.Context) error {
	return r.startInstances(ctx, r.Instances, world.InstanceConfig{DatabaseURL: r.standby.URL})
}

func (r *failover) startReporting(ctx context.Context) error {
	latency := simulator.Between(10*time.Millisecond, 100*time.Millisecond)
	return r.startCars(ctx, cars{latency: latency, interval: reportInterval})
}

func (r *failover) watchAlerts(context.Context) (err error) {
	if r.Alerts {
		r.watch, err = alerts.Start(r.World)
	}
	return err
}

// send sends commands for a while, and returns when all are answered.
func (r *failover) send(ctx context.Context, length time.Duration) {
	until := time.Now().Add(length)
	r.lockAndUnlock(ctx, func(id telematics.VehicleID, n int) (string, bool) {
		wait := pace
		if n == 0 {
			wait = pace * time.Duration(id) / time.Duration(r.Vehicles) // spread
		}
		world.Pause(ctx, wait)
		return r.Running[n%len(r.Running)].Public, time.Now().Before(until)
	})
}

// failOver is the load and the fault. It stops the load while answers to lost commands come in, as
// reports repeat only the last eight results.
func (r *failover) failOver(ctx context.Context) error {
	r.Progress(fmt.Sprintf("%v of load", loadFor))
	r.send(ctx, loadFor)
	if err := r.standby.InSync(ctx, r.Postgres); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("the standby is cut off; %v of load, then a failover to it", behind))
	r.standby.CutOff()
	loaded := make(chan struct{})
	go func() { defer close(loaded); r.send(ctx, behind) }()
	world.Pause(ctx, behind-pace/2) // so that commands are in flight
	r.at = time.Now()
	err := r.standby.Replace(ctx)
	if <-loaded; err != nil {
		return err
	}
	if err := r.Ready(ctx); err != nil {
		return err
	}
	r.Progress("waiting for the answers to lost commands")
	if err := r.settleStandby(ctx); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("%v of load on the promoted standby", loadFor))
	r.send(ctx, loadFor)
	r.answered = time.Now()
	if err := r.settleStandby(ctx); err != nil || r.watch == nil {
		return err
	}
	r.fired, err = r.watch.Fired(ctx)
	return err
}

func (r *failover) settleStandby(ctx context.Context) error {
	return r.settle(ctx, r.standby.Postgres.URL(), storedWithin, failoverLaws)
}

func (r *failover) check(took time.Duration) runner.Result {
	result := runner.Result{Report: verdict.Check(&r.evidence, failoverLaws), Done: len(r.ended)}
	lost, after := 0, 0
	for id := range r.ended {
		if r.states[id] == "" {
			lost++
		}
	}
	for _, e := range r.events {
		if e.Kind == simulator.CommandStarted && e.True.After(r.at) {
			after++
		}
	}
	switch {
	case lost < r.Vehicles/2:
		result.Worthless = fmt.Sprintf("the failover lost only %d commands", lost)
	case after == 0 && len(result.Violations) == 0:
		result.Worthless = "no command was executed after the failover"
	}
	if r.watch != nil {
		alerts.Check(&result.Report, alerts.Round{
			Fault: "postgres-async", Of: FailoverAlerts, From: r.at, To: r.answered, Fired: r.fired,
			Stalled: func(_, _ time.Time) bool { return false },
		})
	}
	result.Summary = r.summary(took, func(t io.Writer) {
		fmt.Fprintf(t, "failover\tto an asynchronous standby, %v behind; %d vehicles, %d instances\n", behind, r.Vehicles, r.Instances)
		fmt.Fprintf(t, "executed\t%d commands, %d of them after the failover\n", result.Done, after)
		fmt.Fprintf(t, "lost\t%d of them are not on record\n", lost)
	})
	return result
}
