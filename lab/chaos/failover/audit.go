package failover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/telematics"
)

// record is what the promoted standby has stored.
type record struct {
	commands   map[uuid.UUID]bool
	unrecorded map[uuid.UUID]bool // answers to commands that are not on record
	entries    map[uuid.UUID]int  // in the audit log, about such answers
}

func readRecord(ctx context.Context, db *sqlx.DB) (record, error) {
	r := record{commands: map[uuid.UUID]bool{}, unrecorded: map[uuid.UUID]bool{}, entries: map[uuid.UUID]int{}}
	var commands, unrecorded, entries []uuid.UUID
	var hasTable bool // an older program has no such table
	err := errors.Join(db.GetContext(ctx, &hasTable, `select to_regclass('unrecorded_answers') is not null`),
		db.SelectContext(ctx, &commands, `select id from commands`),
		db.SelectContext(ctx, &entries, `select command_id from activity where action = 'answer.unrecorded'`))
	if err == nil && hasTable {
		err = db.SelectContext(ctx, &unrecorded, `select command_id from unrecorded_answers`)
	}
	for _, id := range commands {
		r.commands[id] = true
	}
	for _, id := range unrecorded {
		r.unrecorded[id] = true
	}
	for _, id := range entries {
		r.entries[id]++
	}
	return r, err
}

// The laws.
const (
	inOrder  = "no vehicle refuses a command as out of order"
	grows    = "sequence numbers of a vehicle's commands grow"
	recorded = "an executed command, or its answer, is on record"
	once     = "a stored answer to a lost command has one entry in the audit log"
)

// Verdict is what the audit found.
type Verdict struct {
	verdict.Report
	Executed int // commands, by the cars
	Lost     int // of those: not on record
	After    int // executed after the failover
}

// check compares the flight recorders with what the promoted standby has stored.
func check(events []simulator.Event, r record, failover time.Time) Verdict {
	v := Verdict{Report: verdict.New(inOrder, grows, recorded, once)}
	type lane struct {
		unit telematics.Unit
		lane telematics.Lane
	}
	last := map[lane]int64{}
	executed := map[uuid.UUID]bool{}
	refused := map[uuid.UUID]bool{}
	for _, e := range events {
		switch e.Kind {
		case simulator.CommandStarted:
			in := lane{e.Unit, e.Lane}
			v.Must(grows, e.Seq > last[in], "%s started %d after %d", e.Unit, e.Seq, last[in])
			last[in] = e.Seq
			if e.True.After(failover) {
				v.After++
			}
		case simulator.CommandEnded:
			executed[e.Command] = true
		case simulator.CommandAnswered:
			if e.Status == telematics.Received || refused[e.Command] {
				continue
			}
			outOfOrder := e.Status == telematics.Rejected && e.Reason == telematics.OutOfOrder
			refused[e.Command] = outOfOrder
			v.Must(inOrder, !outOfOrder, "%s refused %s, number %d; its last was %d", e.Unit, e.Command, e.Seq, last[lane{e.Unit, e.Lane}])
		}
	}
	v.Executed = len(executed)
	for id := range executed {
		if !r.commands[id] {
			v.Lost++
		}
		v.Must(recorded, r.commands[id] || r.unrecorded[id], "command %s was executed, and neither it nor its answer is on record", id)
	}
	for id := range r.unrecorded {
		v.Must(
			once, r.entries[id] == 1 && !r.commands[id],
			"the answer to %s has %d entries; the command is on record: %v", id, r.entries[id], r.commands[id],
		)
	}
	return v
}

// Result is a round.
type Result struct {
	Config   Config
	Failover time.Time
	Calls    map[string]int // by answer
	Took     time.Duration
	Verdict
}

// Worthless returns why the round proves nothing, or "".
func (r Result) Worthless() string {
	switch {
	case r.Lost < r.Config.Vehicles/2:
		return fmt.Sprintf("the failover lost only %d commands", r.Lost)
	case r.After == 0 && len(r.Violations) == 0:
		return "no command was executed after the failover"
	}
	return ""
}

// Outcome returns how the laws were kept.
func (r *Result) Outcome() *verdict.Report { return &r.Report }

// Write prints a summary of the round.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nseed\t%d\n", r.Config.Seed)
	fmt.Fprintf(
		t, "failover\tto an asynchronous standby, %v behind; %d vehicles, %d instances\n", r.Config.Behind,
		r.Config.Vehicles, r.Config.Instances,
	)
	fmt.Fprintf(t, "time\t%v\n", r.Took.Round(time.Second))
	fmt.Fprintf(t, "executed\t%d commands, %d of them after the failover\n", r.Executed, r.After)
	fmt.Fprintf(t, "lost\t%d of them are not on record\n", r.Lost)
	verdict.WriteCounts(t, "answer", "calls", r.Calls)
	_ = t.Flush() // out is the terminal
	r.Report.Write(out, r.Worthless())
}
