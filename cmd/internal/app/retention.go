package app

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/store/commands"
	"motorpool/store/pg"
)

// Between two batches of settled commands that are moved, while there are others, and else.
const (
	moveAgain = time.Second
	moveEvery = 10 * time.Second
)

// moveSettled moves commands that were settled long ago to the partitions of their months, until
// the context ends.
func moveSettled(ctx context.Context, db *pg.DB, record *commands.Store, moved prometheus.Gauge, log *slog.Logger) error {
	if !awaitSchema(ctx, db, log) {
		return nil
	}
	for {
		more, err := record.MoveSettled(ctx)
		switch {
		case err == nil:
			moved.SetToCurrentTime()
		case ctx.Err() == nil:
			log.Warn("settled commands not moved", "err", err)
		}
		wait := moveEvery
		if more {
			wait = moveAgain
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
	}
}
