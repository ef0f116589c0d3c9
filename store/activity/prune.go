package activity

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Pruned is the result of Prune.
type Pruned struct {
	Before time.Time  // older entries were removed
	Months []pg.Month // partitions
	Others int64      // entries of those months that were in the default partition
}

// Prune removes the entries that are older than the given number of months. The chain of seals
// continues: a new seal records what was removed. The seals of removed entries are removed too,
// except the last one, with which the chain then begins. The database's role must own the tables.
// With dryRun nothing is removed, and entries in the default partition are not counted.
func Prune(ctx context.Context, db *pg.DB, months int, dryRun bool) (p Pruned, err error) {
	if p.Before, err = db.KeepSince(ctx, months); err != nil {
		return p, err
	}
	if p.Months, err = db.DropMonths(ctx, "activity", "activity", p.Before, true); err != nil || dryRun {
		return p, err
	}
	sealer := NewSealer(db, slog.New(slog.DiscardHandler))
	for more := true; more; { // entries that were never sealed would leave no trace
		if more, err = sealer.Seal(ctx); err != nil {
			return p, err
		}
	}
	if err := db.WhenFree(ctx, func(tx *sqlx.Tx) error { return p.remove(ctx, tx) }); err != nil {
		return p, unavailable.Wrap("prune the audit log", err)
	}
	return p, unavailable.Wrap("prune the seals of the audit log", db.WhenFree(ctx, func(tx *sqlx.Tx) error { return forgetSeals(ctx, tx) }))
}

// remove drops the months and records that in a seal.
func (p *Pruned) remove(ctx context.Context, tx *sqlx.Tx) error {
	if _, err := tx.ExecContext(ctx, `select pg_advisory_xact_lock($1)`, sealLock); err != nil {
		return err
	}
	last, err := head(ctx, tx)
	if err != nil {
		return err
	}
	var unsealed bool
	if err := tx.GetContext(ctx, &unsealed, `select exists (select from activity where id > $1 and at < $2)`, last.LastID, p.Before); err != nil {
		return err
	}
	if unsealed {
		return fmt.Errorf("entries before %s are not sealed yet: try again in a minute", p.Before.Format(time.DateOnly))
	}
	if p.Others, err = removeOthers(ctx, tx, p.Before); err != nil {
		return err
	}
	if len(p.Months) == 0 && p.Others == 0 {
		return nil
	}
	seal, err := last.pruning(month(p.Before), time.Now())
	if err == nil {
		err = seal.insert(ctx, tx)
	}
	for _, m := range p.Months {
		if err == nil {
			_, err = tx.ExecContext(ctx, `drop table `+pq.QuoteIdentifier(m.Name))
		}
	}
	return err
}

// removeOthers removes entries from the default partition, whose triggers usually forbid that.
func removeOthers(ctx context.Context, tx *sqlx.Tx, before time.Time) (int64, error) {
	var any bool
	if err := tx.GetContext(ctx, &any, `select exists (select from activity_default where at < $1)`, before); err != nil || !any {
		return 0, err
	}
	return removeAppended(ctx, tx, "activity_default", `delete from activity_default where at < $1`, before)
}

// forgetSeals removes the seals of removed entries, from the first one on, except the last of them.
func forgetSeals(ctx context.Context, tx *sqlx.Tx) error {
	var before int64
	err := tx.GetContext(ctx, &before, `
		with prunes as materialized (select number, pruned_before from activity_seals where pruned_before is not null)
		select coalesce(min(number), 1) - 1 from activity_seals as s
		where not exists (select from prunes as p where p.number > s.number and s.month < p.pruned_before)`)
	if err != nil || before <= 1 {
		return err
	}
	_, err = removeAppended(ctx, tx, "activity_seals", `delete from activity_seals where number < $1`, before)
	return err
}

// removeAppended runs a statement that removes rows of an append-only table: its owner disables the
// triggers meanwhile.
func removeAppended(ctx context.Context, tx *sqlx.Tx, table, statement string, args ...any) (int64, error) {
	if _, err := tx.ExecContext(ctx, `alter table `+table+` disable trigger user`); err != nil {
		return 0, err
	}
	result, err := tx.ExecContext(ctx, statement, args...)
	if err != nil {
		return 0, err
	}
	if _, err := tx.ExecContext(ctx, `alter table `+table+` enable trigger user`); err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// pruning returns the seal after s that records that the entries of months before a month were
// removed.
func (s Seal) pruning(before string, now time.Time) (Seal, error) {
	seal := Seal{
		Number: s.Number + 1, Month: before, FirstID: s.LastID + 1, LastID: s.LastID, PrunedBefore: &before, SealedAt: now.UTC().Truncate(time.Microsecond),
	}
	seal.cover(nil)
	var err error
	seal.Hash, err = seal.after(s.Hash)
	return seal, err
}
