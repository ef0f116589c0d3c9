package main

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// walSegments is how many segments of 16 MB there are to be written over: as many as Postgres keeps by itself where its checkpoints
// come by max_wal_size, 1 GB by default.
const walSegments = 32

// season makes a new cluster like one that has been in use: whoever commits need not wait until a segment of the log is made and filled
// with zeros, which takes tens of milliseconds, since a checkpoint has left old ones.
func (w *world) season(ctx context.Context) error {
	db, err := sqlx.Open("postgres", w.postgres.URL())
	if err != nil {
		return err
	}
	defer db.Close()
	for range walSegments {
		// What is empty is not switched.
		if _, err := db.ExecContext(ctx, `select pg_logical_emit_message(false, 'bench', ''), pg_switch_wal()`); err != nil {
			return fmt.Errorf("fill a segment of the log: %w", err)
		}
	}
	if _, err := db.ExecContext(ctx, `checkpoint`); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// hearOfAll notes that all units are connected: an instance tells of each that was not so far, which happens once in a unit's life.
func (w *witness) hearOfAll(ctx context.Context) error {
	if _, err := w.db.ExecContext(ctx, `update units set status = 'online', session = 'bench', said_at = now(), changed_at = now(), last_seen = now(), announced = 'online'`); err != nil {
		return fmt.Errorf("note that all units are connected: %w", err)
	}
	return nil
}
