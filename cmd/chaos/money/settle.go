package money

import (
	"context"
	"fmt"
	"time"
)

const (
	// settleWithin is more than the longest pause between two tries, and a lease after it.
	settleWithin = 8 * time.Minute
	lookEvery    = 200 * time.Millisecond
	hurryEvery   = time.Second
	quietFor     = 2 * time.Second // that nothing must be due: longer than a refund takes that comes later
	progressEach = 30 * time.Second
)

// openSQL says that something is still to be done about a charge. A deposit that is held is looked at each day, and nothing is
// to be done about it.
const openSQL = `(next_attempt_at is not null or lease is not null or coalesce(look_at < clock_timestamp() + interval '30 minutes', false))`

// dueSQL counts what is due, or is being done. A refund that has failed, or came back, is over.
const dueSQL = `
	select (select count(*) from charges where ` + openSQL + ` or state in ('pending', 'unknown'))
		+ (select count(*) from processor_notices where due_at is not null)`

// hurrySQL lets the waits of the record be over, as they are some minutes later.
var hurrySQL = []string{
	`update charges set next_attempt_at = clock_timestamp() where next_attempt_at > clock_timestamp() and state in ('pending', 'unknown', 'authorized')`,
	`update charges set look_at = clock_timestamp() where look_at > clock_timestamp() and ` + openSQL,
	`update charges set lease_until = clock_timestamp() where lease_until > clock_timestamp() and taken_at < clock_timestamp() - interval '3 seconds'`,
	`update processor_notices set due_at = clock_timestamp() where due_at > clock_timestamp() + interval '1 second'`,
}

// settle waits until nothing is due any more. What does not settle in time is for the audit to judge.
func (w *world) settle(ctx context.Context) error {
	if err := w.ready(ctx); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	w.askAgain(ctx)
	deadline, told, hurried, quiet := time.Now().Add(settleWithin), time.Now(), time.Time{}, time.Time{}
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if w.Hurry && time.Since(hurried) > hurryEvery {
			hurried = time.Now()
			for _, statement := range hurrySQL {
				if _, err := w.db.ExecContext(ctx, statement); err != nil {
					return fmt.Errorf("settle: %w", err)
				}
			}
		}
		var due int
		if err := w.db.QueryRowContext(ctx, dueSQL).Scan(&due); err != nil {
			return fmt.Errorf("settle: %w", err)
		}
		switch {
		case due > 0:
			quiet = time.Time{}
		case quiet.IsZero():
			quiet = time.Now()
		case time.Since(quiet) > quietFor:
			return nil
		}
		if time.Since(told) > progressEach {
			told = time.Now()
			w.Say(fmt.Sprintf("%d charges and notices are still due", due))
		}
		pause(ctx, lookEvery)
	}
	return ctx.Err()
}
