package measure

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

// Waiting measures very many concurrent commands that wait for their vehicles: memory of each, and
// how long an answer takes to its caller. Its floor is the fair floor of commands.
type Waiting struct {
	Vehicles    int           `default:"20000" placeholder:"N" help:"That are locked concurrently, each over an HTTP connection (default ${default})."`
	Connections int           `default:"20" placeholder:"N" help:"MQTT connections of the vehicles (default ${default})."`
	Network     time.Duration `default:"5s" placeholder:"DURATION" help:"Median latency of the vehicles' network, which is between two fifths of that and twice as much (default ${default})."`
	Ramp        time.Duration `default:"16s" placeholder:"DURATION" help:"From the first command to the last; until then no vehicle answers (default ${default})."`
}

// WaitingResult is what Waiting measured.
type WaitingResult struct {
	Wanted   int     `json:"vehicles_wanted"`
	Vehicles int     `json:"vehicles"` // as many as files may be open
	Ramp     float64 `json:"ramp_seconds"`
	Network  float64 `json:"network_seconds"`
	// The time that every vehicle takes in addition to the network.
	Hold    float64        `json:"hold_seconds"`
	Floor   []WaitingRound `json:"fair_floor"`
	Service []WaitingRound `json:"service"`
}

// WaitingRound is one load of commands that waited.
type WaitingRound struct {
	load.Waited
	Executed int64 `json:"started"`  // by the units
	Repeated int64 `json:"repeated"` // commands that units received again
	Rejected int64 `json:"rejected"`
	Entries  int64 `json:"history_lines"` // of the audit log

	// Resident bytes: idle without connections, the largest, and idle again.
	Before int64 `json:"memory_before_bytes"`
	Most   int64 `json:"memory_most_bytes"`
	After  int64 `json:"memory_after_bytes"`
	// The memory of a waiting command: the largest less that before, by the peak in flight.
	Each float64 `json:"kib_each"`

	// From the unit's publication of its answer.
	Added load.Quantiles `json:"vehicle_to_caller"`
	// The part of the service: from when the command was completed, as its answer says.
	Settled load.Quantiles   `json:"settled_to_caller,omitzero"`
	Used    map[string]Usage `json:"used"`
}

const (
	waitingWarm = 256             // commands before the measurement
	rampSlack   = 2 * time.Second // between the last command and the first answer
	answerSlack = 4 * time.Second // between the last answer and the end of its command's budget
	restTime    = 3 * time.Second // before idle memory is read
	// reservedFiles is how many open files the service needs in addition to its callers'
	// connections.
	reservedFiles = 1000
)

// hold is how long units wait in addition to the network, so that the first answers after the last
// command.
func (c *Waiting) hold() time.Duration {
	return max(c.Ramp+rampSlack-load.Network(c.Network).Least(), 0)
}

// longestRamp returns the longest ramp after which the last unit can still answer within the budget
// of its command.
func (c *Waiting) longestRamp() time.Duration {
	network := load.Network(c.Network)
	return telematics.MaxBudget + network.Least() - network.Most() - rampSlack - answerSlack
}

// Measure implements Experiment.
func (c *Waiting) Measure(ctx context.Context, s Setup, r *Results) (err error) {
	if most := c.longestRamp(); c.Network <= 0 || c.Ramp > most {
		return fmt.Errorf("--network %v --ramp %v: the network must be more than 0, and the ramp at most %v, or the last vehicle would answer after the budget of its command", c.Network, c.Ramp, most)
	}
	files, err := openFiles()
	if err != nil {
		return err
	}
	result := &WaitingResult{
		Wanted: c.Vehicles, Vehicles: min(c.Vehicles, files-reservedFiles), Ramp: c.Ramp.Seconds(), Network: c.Network.Seconds(), Hold: c.hold().Seconds(),
	}
	r.Waiting = result
	w, err := s.newWorld(ctx, result.Vehicles, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	if err := takeTurns(s.Rounds, fmt.Sprintf("%d of %d commands that wait", result.Vehicles, c.Vehicles),
		side[WaitingRound]{&result.Floor, func() (WaitingRound, error) { return c.floor(ctx, w) }},
		side[WaitingRound]{&result.Service, func() (WaitingRound, error) { return c.service(ctx, w) }}); err != nil {
		return err
	}
	return result.check()
}

// check returns an error where the service lost a command, or executed it twice.
func (r *WaitingResult) check() error {
	var failures []error
	for i, round := range r.Service {
		if n := int64(r.Vehicles); round.Answered != r.Vehicles || round.Executed != n || round.Entries != n {
			failures = append(failures, fmt.Errorf("round %d: %d commands, %d answered, %d refused (%s), %d executed, %d audit log entries",
				i+1, n, round.Answered, round.Refused, round.Why, round.Executed, round.Entries))
		}
	}
	return errors.Join(failures...)
}

func (c *Waiting) floor(ctx context.Context, w *testWorld) (r WaitingRound, err error) {
	bare, url, err := load.Serve(ctx, &FairFloor{Broker: w.gateway(), Dir: w.Dir, Budget: telematics.MaxBudget})
	if err != nil {
		return r, err
	}
	err = c.load(ctx, w, &r, load.FairRoot, url, bare.PID(), meters{"bare": bare.PID(), "mosquitto": w.Mosquitto.PID()})
	return r, errors.Join(err, bare.Close())
}

func (c *Waiting) service(ctx context.Context, w *testWorld) (r WaitingRound, err error) {
	if err := w.db.connectUnits(ctx); err != nil {
		return r, err
	}
	n, err := w.serve(ctx)
	if err != nil {
		return r, err
	}
	count, err := w.db.entriesSince(ctx, lockAction)
	if err != nil {
		return r, err
	}
	if err := c.load(ctx, w, &r, load.ServiceRoot, n.Public, n.PID(), w.processes(n)); err != nil {
		return r, err
	}
	r.Entries, err = count()
	r.Entries -= int64(min(waitingWarm, w.fleet))
	return r, errors.Join(err, n.Close())
}

// load starts units, warms up, and then locks all vehicles concurrently.
func (c *Waiting) load(ctx context.Context, w *testWorld, r *WaitingRound, root, url string, pid int, processes meters) (err error) {
	units, err := w.startUnits(ctx, &load.Units{
		Root: root, Vehicles: load.Spread(w.fleet, w.fleet), Connections: min(c.Connections, w.fleet), Keyring: w.Path(world.KeyringFile),
		Network: load.Network(c.Network), Hold: c.hold(),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, units.Close()) }()
	processes["cars"] = units.PID()
	var warm load.Waited
	if _, err := load.Do(ctx, &load.Waiters{URL: url, Token: w.token, Vehicles: min(waitingWarm, w.fleet)}, &warm); err != nil {
		return err
	}
	if warm.Refused > 0 {
		return fmt.Errorf("warm up: %d refused: %s", warm.Refused, warm.Why)
	}
	world.Pause(ctx, restTime)
	used, err := processes.start()
	if err != nil {
		return err
	}
	resident := watchResident(ctx, pid)
	state, err := load.Do(ctx, &load.Waiters{URL: url, Token: w.token, Vehicles: w.fleet, Over: c.Ramp}, &r.Waited)
	if err != nil {
		return err
	}
	if r.Used, err = used(); err != nil {
		return err
	}
	r.Used["caller"] = usageAtEnd(state)
	world.Pause(ctx, restTime)
	if r.Before, r.Most, r.After, err = resident(); err != nil {
		return err
	}
	r.Each = float64(r.Most-r.Before) / float64(max(r.Peak, 1)) / 1024
	var heard load.Heard
	if _, err = units.Finish(&heard); err != nil {
		return err
	}
	r.Executed, r.Repeated, r.Rejected = heard.Executed-int64(warm.Answered), heard.Repeated, heard.Refused
	var failure error
	r.Added, err = between(heard.Answered, r.Ended)
	if root == load.ServiceRoot {
		r.Settled, failure = between(r.Completed, r.Ended)
	}
	r.Ended, r.Completed = nil, nil // too long for the results
	return errors.Join(err, failure)
}

// between returns the latencies between two times of each vehicle, in microseconds since the epoch.
// Vehicles without the later one are left out.
func between(from, to []int64) (load.Quantiles, error) {
	all := load.NewLatencies()
	for v, end := range to {
		if end == 0 {
			continue
		}
		if from[v] == 0 || end < from[v] {
			return load.Quantiles{}, fmt.Errorf("vehicle %d: answered at %d, which is before %d", v+1, end, from[v])
		}
		all.Add(time.Duration(end-from[v]) * time.Microsecond)
	}
	return all.Quantiles(), nil
}
