package activity

import (
	"context"
	"log/slog"

	"motorpool/guard"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// KeepPartitions adds the partitions of the next months, again and again. It blocks until the
// context ends, and returns nil.
func KeepPartitions(ctx context.Context, db *pg.DB, log *slog.Logger) error {
	var outage guard.Outage
	for {
		outage.Note(ctx, log, "partitions of the audit log not added", addPartitions(ctx, db))
		if !guard.Pause(ctx, partitionsEvery) {
			return nil
		}
	}
}

// addPartitions adds the partitions of this month and the next ones where they are missing. Entries
// of a month without one are kept in the default partition.
func addPartitions(ctx context.Context, db *pg.DB) error {
	_, err := db.Pool.ExecContext(ctx, `select add_activity_partitions($1)`, partitionsAhead)
	return unavailable.Wrap("add partitions of the audit log", err)
}
