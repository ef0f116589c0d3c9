package alerts

import (
	"context"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Prune removes alerts that were cleared before a time, and returns their number. With dryRun it
// only counts them.
func Prune(ctx context.Context, db *pg.DB, before time.Time, dryRun bool) (removed int64, err error) {
	if dryRun {
		err = db.Pool.GetContext(ctx, &removed, `select count(*) from alerts where cleared_at < $1`, before)
		return removed, unavailable.Wrap("count cleared alerts", err)
	}
	return pg.Prune(ctx, db, "remove cleared alerts", `
		delete from alerts where id in (select id from alerts where cleared_at < $1 limit $2 for update skip locked)`, before)
}
