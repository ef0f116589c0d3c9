package plain

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	_ "github.com/lib/pq" // the audit does not read through the store under test

	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/telematics"
)

// evidence is the accounts of a round.
type evidence struct {
	calls  []call
	events []simulator.Event // of all cars
	record
	moved map[telematics.Unit]bool // units of the shard that was killed

	started, ended map[telematics.CommandID]int // in the cars, by events
}

// record is what Postgres has stored.
type record struct {
	states     map[telematics.CommandID]telematics.State
	unrecorded map[telematics.CommandID]bool // answers to commands that are not on record
	entries    map[telematics.CommandID]int  // in the audit log, about such answers
}

// index adds what the flight recorders have so far.
func (e *evidence) index(events []simulator.Event) *evidence {
	e.events, e.started, e.ended = events, map[telematics.CommandID]int{}, map[telematics.CommandID]int{}
	for _, event := range events {
		switch event.Kind {
		case simulator.CommandStarted:
			e.started[event.Command]++
		case simulator.CommandEnded:
			e.ended[event.Command]++
		}
	}
	return e
}

// settle reads the record, and checks laws, until no violation is left, or the time is over.
func (f *fleet) settle(ctx context.Context, url string, within time.Duration, laws []verdict.Law[*evidence]) error {
	db, err := sqlx.Open("postgres", url+"&connect_timeout=2")
	if err != nil {
		return err
	}
	defer db.Close()
	for end := time.Now().Add(within); ; world.Pause(ctx, 300*time.Millisecond) {
		if f.record, err = readRecord(ctx, db); err != nil {
			return err
		}
		report := verdict.Check(f.index(f.recorder.Events()), laws)
		if len(report.Violations) == 0 || time.Now().After(end) || ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

func readRecord(ctx context.Context, db *sqlx.DB) (record, error) {
	r := record{
		states:     map[telematics.CommandID]telematics.State{},
		unrecorded: map[telematics.CommandID]bool{}, entries: map[telematics.CommandID]int{},
	}
	var rows []struct {
		ID    uuid.UUID
		State telematics.State
	}
	var unrecorded, entries []uuid.UUID
	err := errors.Join(db.SelectContext(ctx, &rows, `select id, state from commands`),
		db.SelectContext(ctx, &entries, `select command_id from activity where action = 'answer.unrecorded'`),
		db.SelectContext(ctx, &unrecorded, `select command_id from unrecorded_answers`))
	for _, row := range rows {
		r.states[row.ID] = row.State
	}
	for _, id := range unrecorded {
		r.unrecorded[id] = true
	}
	for _, id := range entries {
		r.entries[id]++
	}
	return r, err
}
