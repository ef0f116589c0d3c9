package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"
)

// steps is what the parts cost of which a read consists, one after the other on one connection: they explain the
// distance between the service and its floor.
type steps struct {
	Commit quantiles `json:"commit"` // of one small row, on the disk
	Read   quantiles `json:"primary_key_read"`
}

// measureSteps works on a table of its own.
func (w *witness) measureSteps(ctx context.Context, d time.Duration) (steps, error) {
	var s steps
	if _, err := w.db.ExecContext(ctx, `create table bench_steps (id bigserial primary key, at timestamptz not null, what text not null)`); err != nil {
		return s, fmt.Errorf("measure postgres: %w", err)
	}
	commits, rows := newLatencies(), int64(0)
	for end := time.Now().Add(d); time.Now().Before(end); rows++ {
		begin := time.Now()
		if _, err := w.db.ExecContext(ctx, `insert into bench_steps (at, what) values (now(), 'as long as a line of the history, about')`); err != nil {
			return s, fmt.Errorf("measure postgres: %w", err)
		}
		commits.add(time.Since(begin))
	}
	reads := newLatencies()
	for end := time.Now().Add(d); time.Now().Before(end); {
		begin := time.Now()
		var what string
		if err := w.db.GetContext(ctx, &what, `select what from bench_steps where id = $1`, rand.Int64N(rows)+1); err != nil {
			return s, fmt.Errorf("measure postgres: %w", err)
		}
		reads.add(time.Since(begin))
	}
	return steps{Commit: commits.quantiles(), Read: reads.quantiles()}, nil
}

// durable says with which settings Postgres keeps a commit.
func (w *witness) durable(ctx context.Context) (string, error) {
	var said string
	err := w.db.GetContext(ctx, &said, `select 'fsync ' || current_setting('fsync') || ', synchronous_commit ' || current_setting('synchronous_commit')`)
	return said, err
}

// lines counts the history's lines of status reads.
func (w *witness) lines(ctx context.Context) (n int64, err error) {
	err = w.db.GetContext(ctx, &n, `select count(*) from activity where action = 'status.read'`)
	return n, err
}

// locked counts the history's lines of vehicles that were locked.
func (w *witness) locked(ctx context.Context) (n int64, err error) {
	err = w.db.GetContext(ctx, &n, `select count(*) from activity where action = 'command.lock' and outcome = 'executed'`)
	return n, err
}
