package activity

import (
	"context"
	"log/slog"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// KeepPartitions adds the partitions of the next months, again and again. It blocks until the
// context ends, and returns nil.
func KeepPartitions(ctx context.Context, db *pg.DB, log *slog.Logger) error {
	for {
		if err := addPartitions(ctx, db); err != nil && ctx.Err() == nil {
			log.Warn("partitions of the audit log not added, retrying", "err", err, "retry_in", partitionsEvery)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(partitionsEvery):
		}
	}
}

// addPartitions adds the partitions of this month and the next ones where they are missing. Entries
// of a month without one are kept in the default partition.
func addPartitions(ctx context.Context, db *pg.DB) error {
	_, err := db.Pool.ExecContext(ctx, `select add_activity_partitions($1)`, partitionsAhead)
	return unavailable.Wrap("add partitions of the audit log", err)
}
