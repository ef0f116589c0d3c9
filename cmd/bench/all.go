package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"text/tabwriter"
	"time"
)

// all is one measurement after the other, and the figures that tell.
type all struct {
	stage
	Rounds  int    `default:"3" placeholder:"N" help:"Of each floor and of the service, in turn; of growth three times as many, short ones (default ${default})."`
	Short   bool   `help:"A look at everything, in a minute and a half: small and short loads, and a faster network."`
	Crowd   int    `placeholder:"N" help:"Commands that wait at once (default 20000, short 2000)."`
	Out     string `default:"bench.json" placeholder:"FILE" help:"Of all that was measured (default ${default})."`
	Picture string `default:"bench.svg" placeholder:"FILE" help:"Of latency against commands in flight (default ${default})."`
}

// allResult is all that was measured.
type allResult struct {
	Machine machine             `json:"machine"`
	Rounds  int                 `json:"rounds"`
	Ratios  map[string]*float64 `json:"ratios"` // medians; null: not measured
	Spreads map[string]spread   `json:"spreads"`
	Command commandResult       `json:"command"`
	Waiting waitingResult       `json:"waiting"`
	Growth  growthResult        `json:"growth"`
	Status  statusResult        `json:"status"`
	Ingest  ingestResult        `json:"ingest"`
	Startup startupResult       `json:"startup"`
}

// loads are the measurements, at their size.
type loads struct {
	command command
	waiting waiting
	growth  growth
	status  status
	ingest  ingest
	startup startup
}

func (a all) loads() loads {
	s := a.stage
	s.JSON = false
	if a.Short {
		return loads{
			command: command{s, 1000, 1000, []int{1, 256}, 1500 * time.Millisecond, a.Rounds, true, ""},
			waiting: waiting{s, cmp.Or(a.Crowd, 2000), 4, time.Second, 1500 * time.Millisecond, a.Rounds},
			growth:  growth{s, []int{500}, 20_000, 500, 0, 32, 250 * time.Millisecond, 3 * a.Rounds},
			status:  status{s, 200, []int{1, 32}, time.Second, a.Rounds},
			ingest:  ingest{s, []int{1000}, time.Second, a.Rounds, 0, 2000, 1},
			startup: startup{s, 200, a.Rounds, time.Second},
		}
	}
	return loads{
		command: command{s, 1000, 1000, []int{1, 4, 16, 64, 256}, 4 * time.Second, a.Rounds, true, ""},
		waiting: waiting{s, cmp.Or(a.Crowd, 20_000), 20, 5 * time.Second, 16 * time.Second, a.Rounds},
		growth:  growth{s, []int{1000, 10_000, 100_000}, 5_000_000, 1000, 10_000, 64, time.Second, 3 * a.Rounds},
		status:  status{s, 1000, []int{1, 64}, 4 * time.Second, a.Rounds},
		ingest:  ingest{s, []int{1000}, 8 * time.Second, a.Rounds, 0, 5000, 1},
		startup: startup{s, 1000, a.Rounds, 5 * time.Second},
	}
}

func (a all) Run(ctx context.Context) error {
	result := allResult{Machine: thisMachine(), Rounds: a.Rounds}
	failures := []error{a.measure(ctx, &result)}
	result.sum()
	failures = append(failures, a.keep(result), a.print(os.Stdout, result))
	return errors.Join(failures...)
}

// measure measures one thing after the other, also where one was not sound: what was measured is worth telling.
func (a all) measure(ctx context.Context, r *allResult) error {
	l := a.loads()
	r.Command = commandResult{Machine: r.Machine, Vehicles: l.command.Vehicles, Connections: l.command.Connections, Bytes: messageSize}
	r.Waiting = l.waiting.result(r.Machine)
	r.Growth = growthResult{Machine: r.Machine, InFlight: l.growth.InFlight}
	r.Status = statusResult{Machine: r.Machine}
	r.Ingest = ingestResult{Machine: r.Machine, Bytes: reportSize}
	r.Startup = startupResult{Machine: r.Machine, Vehicles: l.startup.Vehicles, Idle: l.startup.Idle.Seconds()}
	var failures []error
	for _, part := range []struct {
		name    string
		measure func() error
	}{
		{"command", func() error { return l.command.measure(ctx, &r.Command) }},
		{"waiting", func() error { return l.waiting.measure(ctx, &r.Waiting) }},
		{"status", func() error { return l.status.measure(ctx, &r.Status) }},
		{"ingest", func() error { return l.ingest.measureAll(ctx, &r.Ingest) }},
		{"startup", func() error { return l.startup.measure(ctx, &r.Startup) }},
		{"growth", func() error { return l.growth.measure(ctx, &r.Growth) }},
	} {
		say("%s", part.name)
		if err := part.measure(); err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", part.name, err))
		}
		if ctx.Err() != nil {
			break
		}
	}
	return errors.Join(failures...)
}

// keep writes the file and the picture.
func (a all) keep(r allResult) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	err = os.WriteFile(a.Out, append(text, '\n'), 0o644)
	if curves := r.Command.curves(); len(curves) > 0 {
		err = errors.Join(err, drawLatency(a.Picture, curves, fmt.Sprintf("%s, %d cores of %s, %s; %d vehicles, %d rounds, Postgres with %s",
			r.Machine.At.Format(time.DateOnly), r.Machine.Cores, r.Machine.CPU, r.Machine.Go, r.Command.Vehicles, r.Rounds, r.Command.Postgres)))
	}
	if err == nil {
		say("all of it is in %s, the picture in %s", a.Out, a.Picture)
	}
	return err
}

// curves are what the picture shows: medians of the rounds.
func (r commandResult) curves() []curve {
	floor, fair, service := curve{Name: "MQTT floor"}, curve{Name: "fair floor"}, curve{Name: "Motorpool"}
	for _, at := range r.At {
		for _, side := range []struct {
			curve  *curve
			rounds []callRound
		}{{&floor, at.Floor}, {&fair, at.Fair}, {&service, at.Service}} {
			side.curve.Points = append(side.curve.Points, point{InFlight: at.InFlight, P50: median(of(side.rounds, p50)), P99: median(of(side.rounds, p99))})
		}
	}
	if len(service.Points) == 0 {
		return nil
	}
	return []curve{floor, fair, service}
}

func p99(r callRound) float64 { return r.P99 }

func (r allResult) tables(to *tabwriter.Writer) {
	for _, part := range []interface{ tables(*tabwriter.Writer) }{r.Command, r.Waiting, r.Status, r.Ingest, r.Startup, r.Growth} {
		part.tables(to)
		fmt.Fprintln(to)
	}
	r.aims(to)
}
