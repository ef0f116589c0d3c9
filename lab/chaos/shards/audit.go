package shards

import (
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the audit does not read through the store under test

	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

// The laws.
const (
	notLate   = "no command starts after its expiry"
	once      = "no command starts more than once"
	recorded  = "an executed command is on record as succeeded"
	truth     = "an answer to a caller is true"
	undamaged = "a command to a unit of another shard is executed"
)

// record is the state of each command.
type record map[telematics.CommandID]telematics.State

func unitOf(id telematics.VehicleID) telematics.Unit {
	return telematics.Unit(fmt.Sprintf("car-%d", id))
}

func readRecord(ctx context.Context, db *sqlx.DB) (record, error) {
	var rows []struct {
		ID    uuid.UUID
		State telematics.State
	}
	if err := db.SelectContext(ctx, &rows, `select id, state from commands`); err != nil {
		return nil, err
	}
	r := record{}
	for _, row := range rows {
		r[row.ID] = row.State
	}
	return r, nil
}

// settle checks until no violation is left, or the time is over.
func (r *round) settle(ctx context.Context, calls []world.PlainCall) (verdict.Report, error) {
	db, err := sqlx.Open("postgres", r.Postgres.URL()+"&connect_timeout=2")
	if err != nil {
		return verdict.Report{}, err
	}
	defer db.Close()
	for end := time.Now().Add(settleWithin); ; world.Pause(ctx, 500*time.Millisecond) {
		states, err := readRecord(ctx, db)
		if err != nil {
			return verdict.Report{}, err
		}
		report := check(calls, states, r.fleet.Recorder.Events(), r.moved)
		if len(report.Violations) == 0 || time.Now().After(end) || ctx.Err() != nil {
			return report, ctx.Err()
		}
	}
}

// check compares the callers' answers, Postgres and the flight recorders.
func check(calls []world.PlainCall, states record, events []simulator.Event, moved map[telematics.Unit]bool) verdict.Report {
	r := verdict.New(notLate, once, recorded, truth, undamaged)
	started, ended := map[telematics.CommandID]int{}, map[telematics.CommandID]bool{}
	for _, e := range events {
		switch e.Kind {
		case simulator.CommandStarted:
			started[e.Command]++
			r.Must(notLate, !e.True.After(e.Expires), "%s started %s %v after its expiry", e.Unit, e.Command, e.True.Sub(e.Expires))
		case simulator.CommandEnded:
			ended[e.Command] = true
		}
	}
	for id, n := range started {
		r.Must(once, n == 1, "%s started %d times", id, n)
	}
	for id := range ended {
		r.Must(recorded, states[id] == telematics.Succeeded, "%s was executed, and is %q on record", id, states[id])
	}
	for _, c := range calls {
		switch c.Outcome {
		case telematics.Executed:
			r.Must(truth, ended[c.Command], "%s was answered with %s, and not executed", c.Command, c.Answer)
		case telematics.NotExecuted: // one that is refused because another is open names that
			r.Must(truth, started[c.Command] == 0 || c.Answer == inProgress, "%s was answered with %s, and executed", c.Command, c.Answer)
		}
		if unit := unitOf(c.Vehicle); !moved[unit] {
			r.Must(undamaged, c.Answer == world.Executed, "%s, after %v: %s", unit, c.Took.Round(time.Millisecond), c.Answer)
		}
	}
	return r
}

// Result is a round.
type Result struct {
	Config
	verdict.Report
	Calls   map[string]int // by answer
	Moved   int            // units of the shard that was killed
	During  int            // commands that began while it was down
	Down    time.Duration
	Took    time.Duration
	Median  time.Duration // of what callers waited
	Longest time.Duration
}

func newResult(c Config, report verdict.Report, calls []world.PlainCall, down interval, moved int, took time.Duration) Result {
	r := Result{
		Config: c, Report: report, Moved: moved, Down: down.to.Sub(down.from), Took: took,
		Calls: verdict.Count(calls, func(one world.PlainCall) string { return one.Answer }),
	}
	waits := make([]time.Duration, len(calls))
	for i, one := range calls {
		waits[i] = one.Took
		if one.Begin.After(down.from) && one.Begin.Before(down.to) {
			r.During++
		}
	}
	if slices.Sort(waits); len(waits) > 0 {
		r.Median, r.Longest = waits[len(waits)/2], waits[len(waits)-1]
	}
	return r
}

// Worthless returns why the round proves nothing, or "".
func (r Result) Worthless() string {
	switch {
	case r.Moved == 0 || r.Moved == r.Vehicles:
		return fmt.Sprintf("%d of %d units were at the shard that was killed", r.Moved, r.Vehicles)
	case r.During < r.Commands/10:
		return fmt.Sprintf("only %d commands began while the shard was down", r.During)
	case r.Calls[world.Executed] < r.Commands/2:
		return fmt.Sprintf("only %d commands were executed", r.Calls[world.Executed])
	}
	return ""
}

// Outcome returns how the laws were kept.
func (r *Result) Outcome() *verdict.Report { return &r.Report }

// Write prints a summary of the round.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
	fmt.Fprintf(
		t, "shards\t%d behind HAProxy, of which one was down for %v; %d instances\n", shards,
		r.Down.Round(100*time.Millisecond), instances,
	)
	fmt.Fprintf(t, "units\t%d, of which %d were at that shard\n", r.Vehicles, r.Moved)
	fmt.Fprintf(t, "time\t%v\n", r.Took.Round(time.Second))
	fmt.Fprintf(t, "commands\t%d, of which %d began while the shard was down\n", r.Commands, r.During)
	fmt.Fprintf(t, "late %d, twice %d, forgotten %d\n", len(r.Of(notLate)), len(r.Of(once)), len(r.Of(recorded)))
	fmt.Fprintf(
		t, "callers waited\t%v at the median, %v at the longest\n", r.Median.Round(time.Millisecond),
		r.Longest.Round(time.Millisecond),
	)
	verdict.WriteCounts(t, "answer", "calls", r.Calls)
	_ = t.Flush() // out is the terminal
	r.Report.Write(out, r.Worthless())
}
