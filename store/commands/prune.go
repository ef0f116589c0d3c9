package commands

import (
	"context"
	"time"

	"motorpool/store/pg"
)

// MinMonths is the least number of whole months for which commands are kept: for that time an
// answer may still settle a command whose outcome is unknown.
const MinMonths = 3

// Pruned is the result of Prune.
type Pruned struct {
	Before time.Time  // older commands were removed
	Months []pg.Month // of commands
	// Rows of other tables: orders to many vehicles, and answers to unrecorded commands.
	Bulks, Unrecorded int64
}

// Prune removes settled commands that are older than the given number of months, with the rows that
// belong to them. Commands that are still in the table commands stay, such as open ones. The
// database's role must own the tables. With dryRun nothing is removed, and rows of other tables are
// not counted.
func Prune(ctx context.Context, db *pg.DB, months int, dryRun bool) (p Pruned, err error) {
	if p.Before, err = db.KeepSince(ctx, max(months, MinMonths)); err != nil {
		return p, err
	}
	if p.Months, err = db.DropMonths(ctx, "settled_commands", "commands", p.Before, dryRun); err != nil || dryRun {
		return p, err
	}
	for _, rows := range []struct {
		doing, statement string
		removed          *int64
	}{
		{"prune commands with other ids", `
			delete from settled_commands_other where id in (
				select id from settled_commands_other where requested_at < $1 limit $2)`, new(int64)},
		{"prune unrecorded answers", `
			delete from unrecorded_answers where (unit, command_id) in (
				select unit, command_id from unrecorded_answers
				where noted_at < $1 and command_on_record(command_id) limit $2)`, &p.Unrecorded},
		{"prune orders to many vehicles", `
			with outdated as (
				select id from bulks b
				where requested_at < $1 and not exists (select from idempotency_keys k where k.bulk_id = b.id)
					and not exists (select from commands c where c.bulk_id = b.id)
					and not exists (select from settled_commands c where c.bulk_id = b.id)
				limit $2
			), refusals as (
				delete from bulk_refusals where bulk_id in (select id from outdated)
			)
			delete from bulks where id in (select id from outdated)`, &p.Bulks},
	} {
		if *rows.removed, err = pg.Prune(ctx, db, rows.doing, rows.statement, p.Before); err != nil {
			return p, err
		}
	}
	return p, nil
}
