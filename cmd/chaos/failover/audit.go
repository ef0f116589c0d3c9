package failover

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"

	"motorpool/simulator"
	"motorpool/telematics"
)

// record is what the promoted standby has stored.
type record struct {
	commands   map[uuid.UUID]bool
	unrecorded map[uuid.UUID]bool // answers to commands that are not on record
	entries    map[uuid.UUID]int  // in the audit log, about such answers
}

func readRecord(ctx context.Context, db *sql.DB) (record, error) {
	r := record{commands: map[uuid.UUID]bool{}, unrecorded: map[uuid.UUID]bool{}, entries: map[uuid.UUID]int{}}
	var hasTable bool // an older program has no such table
	if err := db.QueryRowContext(ctx, `select to_regclass('unrecorded_answers') is not null`).Scan(&hasTable); err != nil {
		return r, err
	}
	err := each(ctx, db, `select id from commands`, func(id uuid.UUID) { r.commands[id] = true })
	if err == nil && hasTable {
		err = each(ctx, db, `select command_id from unrecorded_answers`, func(id uuid.UUID) { r.unrecorded[id] = true })
	}
	if err == nil {
		err = each(ctx, db, `select command_id from activity where action = 'answer.unrecorded'`, func(id uuid.UUID) { r.entries[id]++ })
	}
	return r, err
}

func each(ctx context.Context, db *sql.DB, query string, do func(uuid.UUID)) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id uuid.UUID
		if err := rows.Scan(&id); err != nil {
			return err
		}
		do(id)
	}
	return rows.Err()
}

// The laws.
const (
	inOrder  = "no vehicle refuses a command as out of order"
	grows    = "sequence numbers of a vehicle's commands grow"
	recorded = "an executed command, or its answer, is on record"
	once     = "a stored answer to a lost command has one entry in the audit log"
)

var laws = []string{inOrder, grows, recorded, once}

// Verdict is what the audit found.
type Verdict struct {
	Violations []string
	Checked    map[string]int // by law
	Executed   int            // commands, by the cars
	Lost       int            // of those: not on record
	After      int            // executed after the failover
}

// check compares the flight recorders with the record.
func check(events []simulator.Event, r record, failover time.Time) Verdict {
	v := Verdict{Checked: map[string]int{}}
	must := func(law string, holds bool, format string, args ...any) {
		v.Checked[law]++
		if !holds {
			v.Violations = append(v.Violations, law+": "+fmt.Sprintf(format, args...))
		}
	}
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
			must(grows, e.Seq > last[in], "%s started %d after %d", e.Unit, e.Seq, last[in])
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
			must(inOrder, !outOfOrder, "%s refused %s, number %d; its last was %d", e.Unit, e.Command, e.Seq, last[lane{e.Unit, e.Lane}])
		}
	}
	v.Executed = len(executed)
	for id := range executed {
		if !r.commands[id] {
			v.Lost++
		}
		must(recorded, r.commands[id] || r.unrecorded[id], "command %s was executed, and neither it nor its answer is on record", id)
	}
	for id := range r.unrecorded {
		must(once, r.entries[id] == 1 && !r.commands[id], "the answer to %s has %d entries; the command is on record: %v", id, r.entries[id], r.commands[id])
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

// shown is how many violations of each law are printed.
const shown = 5

// Write prints a summary of the round.
func (r Result) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nseed\t%d\n", r.Config.Seed)
	fmt.Fprintf(t, "failover\tto an asynchronous standby, %v behind; %d vehicles, %d instances\n", r.Config.Behind, r.Config.Vehicles, r.Config.Instances)
	fmt.Fprintf(t, "time\t%v\n", r.Took.Round(time.Second))
	fmt.Fprintf(t, "executed\t%d commands, %d of them after the failover\n", r.Executed, r.After)
	fmt.Fprintf(t, "lost\t%d of them are not on record\n", r.Lost)
	for _, answer := range slices.Sorted(maps.Keys(r.Calls)) {
		fmt.Fprintf(t, "answered\t%d × %s\n", r.Calls[answer], answer)
	}
	fmt.Fprintf(t, "\nlaw\tchecked\tviolations\n")
	for _, law := range laws {
		fmt.Fprintf(t, "%s\t%d\t%d\n", law, r.Checked[law], len(r.of(law)))
	}
	_ = t.Flush() // out is the terminal
	fmt.Fprintln(out)
	for _, law := range laws {
		found := r.of(law)
		for _, violation := range found[:min(shown, len(found))] {
			fmt.Fprintf(out, "violation: %s\n", violation)
		}
		if len(found) > shown {
			fmt.Fprintf(out, "… and %d more\n", len(found)-shown)
		}
	}
	if why := r.Worthless(); why != "" {
		fmt.Fprintf(out, "this round proves nothing: %s\n", why)
	}
	fmt.Fprintf(out, "violations: %d\n", len(r.Violations))
}

func (r Result) of(law string) (found []string) {
	for _, violation := range r.Violations {
		if len(violation) > len(law) && violation[:len(law)] == law {
			found = append(found, violation)
		}
	}
	return found
}
