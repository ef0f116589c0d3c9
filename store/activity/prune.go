package activity

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Pruned is the result of Prune.
type Pruned struct {
	Before time.Time  // older entries were removed
	Months []pg.Month // partitions
	Others int64      // entries of those months that were in the default partition
}

// Prune removes the entries that are older than the given number of months. The database's role
// must own the tables. With dryRun nothing is removed, and entries in the default partition are not
// counted.
func Prune(ctx context.Context, db *pg.DB, months int, dryRun bool) (p Pruned, err error) {
	if p.Before, err = db.KeepSince(ctx, months); err != nil {
		return p, err
	}
	if p.Months, err = db.DropMonths(ctx, "activity", "activity", p.Before, dryRun); err != nil || dryRun {
		return p, err
	}
	err = db.WhenFree(ctx, func(tx *sqlx.Tx) error {
		p.Others, err = removeOthers(ctx, tx, p.Before)
		return err
	})
	return p, unavailable.Wrap("prune the audit log", err)
}

// removeOthers removes entries from the default partition, whose triggers forbid that: its owner
// disables them meanwhile.
func removeOthers(ctx context.Context, tx *sqlx.Tx, before time.Time) (int64, error) {
	var any bool
	if err := tx.GetContext(ctx, &any, `select exists (select from activity_default where at < $1)`, before); err != nil || !any {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, `alter table activity_default disable trigger user`); err != nil {
		return 0, err
	}
	removed, err := pg.Affected(tx.ExecContext(ctx, `delete from activity_default where at < $1`, before))
	if err != nil {
		return 0, err
	}
	_, err = tx.ExecContext(ctx, `alter table activity_default enable trigger user`)
	return removed, err
}
