package activity

import (
	"context"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// AddPartitions adds the partitions of this month and the next ones where they are missing, and
// returns their names. Entries of a month without one are kept in the default partition.
func AddPartitions(ctx context.Context, db *pg.DB) (added []string, err error) {
	err = db.Pool.SelectContext(ctx, &added, `select add_activity_partitions($1)`, partitionsAhead)
	return added, unavailable.Wrap("add partitions of the audit log", err)
}
