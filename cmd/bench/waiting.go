package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"motorpool/telematics"
)

// waiting measures what commands cost that wait for their vehicles, very many at once: memory, and what the crowd adds to the way of
// an answer. Its floor is the handler that writes nothing down.
type waiting struct {
	stage
	Vehicles    int           `default:"20000" placeholder:"N" help:"That are locked at once, each over an HTTP connection of its own (default ${default})."`
	Connections int           `default:"20" placeholder:"N" help:"MQTT connections of the vehicles (default ${default})."`
	Network     time.Duration `default:"5s" placeholder:"DURATION" help:"Median of what the network takes; it is between two fifths of that and twice as much (default ${default})."`
	Ramp        time.Duration `default:"16s" placeholder:"DURATION" help:"From the first order to the last, with this network at most 16s. As fast as this machine takes orders; until the last, no vehicle answers (default ${default})."`
	Rounds      int           `default:"3" placeholder:"N" help:"Of the floor and of the service, in turn, each in a new process (default ${default})."`
}

type waitingResult struct {
	Machine     machine        `json:"machine"`
	Wanted      int            `json:"vehicles_wanted"`
	Vehicles    int            `json:"vehicles"` // as many as files may be open
	OpenFiles   uint64         `json:"open_files"`
	Connections int            `json:"connections"`
	Ramp        float64        `json:"ramp_seconds"`
	Network     float64        `json:"network_seconds"` // its median
	Hold        float64        `json:"hold_seconds"`    // that every vehicle takes beside what the network takes
	Postgres    string         `json:"postgres"`
	Floor       []waitingRound `json:"fair_floor"`
	Service     []waitingRound `json:"service"`
}

// waitingRound is one crowd of commands that waited.
type waitingRound struct {
	Answered int     `json:"answered"`
	Refused  int     `json:"refused"`
	Why      string  `json:"why,omitempty"`  // of one that was refused
	Sending  float64 `json:"sending"`        // seconds from the first order to the last
	Peak     int     `json:"peak_in_flight"` // ordered and not answered, as callers see it
	Out      int     `json:"peak_out"`       // of those of the service: published and not settled, as its answers say

	// Resident bytes of who answers: idle with no connection open, the most that was seen, and idle once more.
	Before int64   `json:"memory_before_bytes"`
	Most   int64   `json:"memory_most_bytes"`
	After  int64   `json:"memory_after_bytes"`
	Each   float64 `json:"kib_each"` // of one that waits: most less before, by the peak

	Added   quantiles  `json:"vehicle_to_caller"`           // from when the vehicle gave its answer to its connection
	Settled *quantiles `json:"settled_to_caller,omitempty"` // from when the command was completed, as the record has it

	Started      int64            `json:"started"`  // by vehicles
	Repeated     int64            `json:"repeated"` // that vehicles were sent once more, and did not do again
	Rejected     int64            `json:"rejected"` // by vehicles: expired when it came, or not for them
	Lines        int64            `json:"history_lines"`
	Publications int64            `json:"publications"`
	Lost         int64            `json:"answers_lost"` // by the service, which asks once more: then the vehicle says it again
	Used         map[string]usage `json:"used"`
}

const (
	// waitingWarm are locked before, so that what is only made once is made.
	waitingWarm = 256
	// overrun is how late the last order may be before another is answered.
	overrun = 2 * time.Second
	// spared of its command's budget is what the slowest vehicle's answer is left.
	spared = 4 * time.Second
	// calm is how long a process is left alone before its idle memory is read.
	calm = 3 * time.Second
)

func (w waiting) Run(ctx context.Context) error {
	result := w.result(thisMachine())
	err := w.measure(ctx, &result)
	return errors.Join(err, w.print(os.Stdout, result))
}

// result is one in which nothing is measured yet.
func (w waiting) result(m machine) waitingResult {
	return waitingResult{
		Machine: m, Wanted: w.Vehicles, Connections: w.Connections,
		Ramp: w.Ramp.Seconds(), Network: w.Network.Seconds(), Hold: w.hold().Seconds(),
	}
}

func (w waiting) measure(ctx context.Context, result *waitingResult) (err error) {
	if w.Network <= 0 || w.rampMost() <= 0 {
		return fmt.Errorf("--network %v: must be more than 0, and so short that the last vehicle can answer within the budget of its command, %v", w.Network, telematics.MaxBudget)
	}
	if most := w.rampMost(); w.Ramp > most {
		return fmt.Errorf("--ramp %v: at most %v, or the last vehicle would answer after the budget of its command", w.Ramp, most)
	}
	if result.OpenFiles, err = mayOpen(uint64(w.Vehicles) + sparedFiles); err != nil {
		return err
	}
	if result.Vehicles = min(w.Vehicles, int(result.OpenFiles)-sparedFiles); result.Vehicles < w.Vehicles {
		say("%s", result.tooFewFiles())
	}
	world, err := w.newWorld(ctx, result.Vehicles)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.tearDown()) }()
	eyes, err := openWitness(world.postgres.URL())
	if err != nil {
		return err
	}
	defer eyes.close()
	if result.Postgres, err = eyes.durable(ctx); err != nil {
		return err
	}
	c := crowd{world: world, waiting: w, eyes: eyes}
	for round := range w.Rounds {
		say("%d commands that wait at once: round %d of %d", result.Vehicles, round+1, w.Rounds)
		floor, err := again(ctx, func() (waitingRound, error) { return c.floor(ctx) }, func(r waitingRound) bool {
			return r.Refused == 0 && r.Answered == c.vehicles && r.Started == int64(c.vehicles)
		})
		if err != nil {
			return err
		}
		result.Floor = append(result.Floor, floor)
		service, err := c.service(ctx)
		if err != nil {
			return err
		}
		result.Service = append(result.Service, service)
	}
	return result.sound()
}

// hold is how long vehicles wait beside what the network takes, so that the first does not answer before the last is asked.
func (w waiting) hold() time.Duration { return max(w.Ramp+overrun-cellular(w.Network).least(), 0) }

func (w waiting) rampMost() time.Duration {
	network := cellular(w.Network)
	return telematics.MaxBudget + network.least() - network.most() - overrun - spared
}

// tooFewFiles says why there are fewer vehicles than were asked for.
func (r waitingResult) tooFewFiles() string {
	return fmt.Sprintf("%d vehicles instead of %d: a process may have %d files open here, each waiting caller is one, and %d are spared; raise the hard limit (ulimit -Hn)",
		r.Vehicles, r.Wanted, r.OpenFiles, sparedFiles)
}

// sound returns an error where a command was lost, done twice, or is not in the history once.
func (r waitingResult) sound() error {
	var failures []error
	for _, side := range []struct {
		name   string
		rounds []waitingRound
	}{{"fair floor", r.Floor}, {"service", r.Service}} {
		for i, round := range side.rounds {
			if round.Refused > 0 || round.Answered != r.Vehicles {
				failures = append(failures, fmt.Errorf("%s, round %d: %d of %d answered, %d refused: %s", side.name, i+1, round.Answered, r.Vehicles, round.Refused, round.Why))
			}
			if round.Started != int64(r.Vehicles) {
				failures = append(failures, fmt.Errorf("%s, round %d: %d vehicles, %d times locked; they rejected %d", side.name, i+1, r.Vehicles, round.Started, round.Rejected))
			}
		}
	}
	for i, round := range r.Service {
		if round.Lines != int64(r.Vehicles) {
			failures = append(failures, fmt.Errorf("service, round %d: %d orders, %d lines in the history", i+1, r.Vehicles, round.Lines))
		}
	}
	return errors.Join(failures...)
}

// crowd has all vehicles locked at once.
type crowd struct {
	*world
	waiting waiting
	eyes    *witness
}

// floor has the handler asked that writes nothing down.
func (c crowd) floor(ctx context.Context) (r waitingRound, err error) {
	bare, address, err := attend(ctx, "bare", "--broker", c.mosquitto.ServiceURL(), "--password", gatewayPassword,
		"--budget", telematics.MaxBudget.String(), "--signing", c.path("signing.jwks"), "--tokens", c.path("tokens.jwks"), "--vehicles", strconv.Itoa(c.vehicles))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, bare.stop()) }()
	return c.round(ctx, fairRoot, "http://"+address, bare.pid(), meters{"bare": bare.pid(), "mosquitto": c.mosquitto.PID()}, func() (book, error) {
		return book{}, nil
	})
}

// service has an instance of the service asked, and its books.
func (c crowd) service(ctx context.Context) (r waitingRound, err error) {
	if err := c.eyes.hearOfAll(ctx); err != nil {
		return r, err
	}
	n, err := c.serve(ctx)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	return c.round(ctx, serviceRoot, n.Public, n.PID(), meters{
		"service": n.PID(), "postgres": c.postgres.PID(), "redis": c.redis.PID(), "mosquitto": c.mosquitto.PID(),
	}, func() (book, error) {
		lines, err := c.eyes.locked(ctx)
		if err != nil {
			return book{}, err
		}
		counts, err := readLedger(ctx, n.Internal+"/metrics")
		return book{
			lines: lines, publications: counts["publications"], lost: counts["answers_dropped"] + counts["answers_limited"] + counts["answers_lost"], settles: true,
		}, err
	})
}

// book is what who answers has written down so far.
type book struct {
	lines, publications, lost int64
	settles                   bool // it says when it has completed a command
}

// round lets new vehicles listen, warms up, and then has all of them locked.
func (c crowd) round(ctx context.Context, root, url string, pid int, m meters, read func() (book, error)) (r waitingRound, err error) {
	cars, _, err := attend(ctx, "cars", "--broker", c.mosquitto.ServiceURL(), "--password", gatewayPassword, "--root", root, "--cellular", c.waiting.Network.String(), "--hold", c.waiting.hold().String(),
		"--vehicles", strconv.Itoa(c.vehicles), "--connections", strconv.Itoa(min(c.waiting.Connections, c.vehicles)), "--keyring", c.path("units.jwks"))
	if err != nil {
		return r, err
	}
	m["cars"] = cars.pid()
	var warm, crowd waved
	var before, after book
	var usedBefore, usedAfter map[string]usage
	var caller usage
	var stop func() (int64, error)
	for _, step := range []func() error{
		func() error { return c.warm(ctx, &warm, url) },
		func() error { return rest(ctx) },
		func() (err error) { before, err = read(); return err },
		func() (err error) { usedBefore, err = m.read(); return err },
		func() (err error) { r.Before, err = resident(pid); return err },
		func() (err error) {
			stop = watchResident(ctx, pid)
			caller, err = c.wave(ctx, &crowd, url, c.vehicles, c.waiting.Ramp)
			var watched error
			r.Most, watched = stop()
			return errors.Join(err, watched)
		},
		func() (err error) { usedAfter, err = m.read(); return err },
		func() error { return rest(ctx) },
		func() (err error) { r.After, err = resident(pid); return err },
		func() (err error) { after, err = read(); return err },
	} {
		if err := step(); err != nil {
			return r, errors.Join(err, cars.stop())
		}
	}
	r.Used = used(usedBefore, usedAfter)
	r.Used["caller"] = caller
	r.Lines, r.Publications, r.Lost = after.lines-before.lines, after.publications-before.publications, after.lost-before.lost
	var heard heardByAll
	if _, err := cars.finish("end", &heard); err != nil {
		return r, err
	}
	r.Started, r.Repeated, r.Rejected = heard.Started-int64(warm.answered()), heard.Repeated, heard.Refused
	return r, r.reckon(crowd, heard.Answered, after.settles)
}

// warm has some vehicles locked, each of which must succeed.
func (c crowd) warm(ctx context.Context, result *waved, url string) error {
	_, err := c.wave(ctx, result, url, min(waitingWarm, c.vehicles), 0)
	if err == nil && result.Refused > 0 {
		err = fmt.Errorf("warm up: %d refused: %s", result.Refused, result.Why)
	}
	return err
}

// wave has the first vehicles locked at once.
func (c crowd) wave(ctx context.Context, result *waved, url string, vehicles int, over time.Duration) (usage, error) {
	return work(ctx, result, "wave", "--url", url, "--token", c.admin, "--vehicles", strconv.Itoa(vehicles), "--over", over.String())
}

// rest leaves everybody alone for a moment.
func rest(ctx context.Context) error {
	select {
	case <-time.After(calm):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reckon makes figures of the times that the callers noted, and of those when vehicles gave their answers.
func (r *waitingRound) reckon(crowd waved, given []int64, settles bool) error {
	r.Answered, r.Refused, r.Why = crowd.answered(), crowd.Refused, crowd.Why
	r.Sending = spanOf(crowd.Sent).Seconds()
	r.Peak = mostAtOnce(crowd.Sent, crowd.Ended)
	if r.Peak > 0 {
		r.Each = float64(r.Most-r.Before) / float64(r.Peak) / 1024
	}
	added, err := between(given, crowd.Heard)
	if err != nil {
		return fmt.Errorf("from the vehicle to the caller: %w", err)
	}
	r.Added = added.quantiles()
	if !settles {
		return nil
	}
	settled, err := between(crowd.Settled, crowd.Heard)
	if err != nil {
		return fmt.Errorf("from the settlement to the caller: %w", err)
	}
	q := settled.quantiles()
	r.Settled, r.Out = &q, mostAtOnce(crowd.Out, crowd.Settled)
	return nil
}
