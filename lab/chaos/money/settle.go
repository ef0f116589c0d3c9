package money

import (
	"context"
	"fmt"
	"time"

	"motorpool/lab/world"
)

const (
	// settleWithin is longer than the longest pause between two attempts, with a lease after it.
	settleWithin = 8 * time.Minute
	// lostWithin is that of a round of lost commits, which hurries and has no other fault.
	lostWithin   = time.Minute
	pollInterval = 200 * time.Millisecond
	hurryEvery   = time.Second
	quietFor     = 2 * time.Second // without anything due: longer than a delayed refund takes
	progressEach = 30 * time.Second
)

// openSQL selects charges that a worker still has to process. A deposit that is held is only
// checked, once a day.
const openSQL = `(next_attempt_at is not null or lease is not null or coalesce(look_at < clock_timestamp() + interval '30 minutes', false))`

// dueSQL counts what is due, or in progress, transitions of rentals included. A refund that has
// failed, or was returned, is final.
const dueSQL = `
	select (select count(*) from charges where ` + openSQL + ` or state in ('pending', 'unknown'))
		+ (select count(*) from processor_notices where due_at is not null)
		+ (select count(*) from transitions where state = 'open')`

// hurrySQL ends pauses and leases that would end some minutes later.
var hurrySQL = []string{
	`update charges set next_attempt_at = clock_timestamp()
		where next_attempt_at > clock_timestamp() and state in ('pending', 'unknown', 'authorized')`,
	`update charges set look_at = clock_timestamp() where look_at > clock_timestamp() and ` + openSQL,
	`update charges set lease_until = clock_timestamp()
		where lease_until > clock_timestamp() and taken_at < clock_timestamp() - interval '3 seconds'`,
	`update transitions set due_at = clock_timestamp(),
			content = content || jsonb_strip_nulls(jsonb_build_object(
				'since', (content ->> 'since')::timestamptz - interval '30 seconds',
				'unknown_since', (content ->> 'unknown_since')::timestamptz - interval '30 seconds'))
		where state = 'open' and lease is null`,
	`update transitions set lease_until = clock_timestamp() where lease_until < clock_timestamp() + interval '40 seconds'`,
	`update processor_notices set due_at = clock_timestamp() where due_at > clock_timestamp() + interval '1 second'`,
}

// settle waits until nothing is due any more. The audit checks what is still due after
// settleWithin.
func (r *round) settle(ctx context.Context) error {
	if err := r.Ready(ctx); err != nil {
		return fmt.Errorf("settle: %w", err)
	}
	r.retryUnanswered(ctx)
	within := settleWithin
	if r.LostCommits {
		within = lostWithin
	}
	deadline, reported, hurried, quiet := time.Now().Add(within), time.Now(), time.Time{}, time.Time{}
	for time.Now().Before(deadline) && ctx.Err() == nil {
		if r.Hurry && time.Since(hurried) > hurryEvery {
			hurried = time.Now()
			for _, statement := range hurrySQL {
				if _, err := r.db.ExecContext(ctx, statement); err != nil {
					return fmt.Errorf("settle: %w", err)
				}
			}
		}
		var due int
		if err := r.db.GetContext(ctx, &due, dueSQL); err != nil {
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
		if time.Since(reported) > progressEach {
			reported = time.Now()
			r.Progress(fmt.Sprintf("%d charges and notices are still due", due))
		}
		world.Pause(ctx, pollInterval)
	}
	return ctx.Err()
}
