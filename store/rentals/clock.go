package rentals

import (
	"context"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// farthestDue is how far ahead a charge or a notice may be due: the last interval between two
// attempts of a declined card is a week. Half: such a charge would be tried too early; double: one
// that was written while a clock was ahead by some days waits for two weeks.
const farthestDue = 8 * 24 * time.Hour

// longestLease is how far ahead a lease may end, and a transition be due; they last a minute. Half
// would do; double: a charge whose worker ended while its clock was ahead by less than two hours
// waits that long.
const longestLease = time.Hour

// CorrectTimes makes charges, notices and transitions due now that are due later than they can be,
// or leased for longer: Postgres's clock had leapt ahead. It returns their number; none until the
// clock has been steady for some hours, since by one that has gone back much seems to be far ahead.
func CorrectTimes(ctx context.Context, db *pg.DB) (corrected int, err error) {
	err = db.Pool.GetContext(ctx, &corrected, `
		with due as (
			update charges set next_attempt_at = least(next_attempt_at, now()), look_at = least(look_at, now()),
				taken_at = least(taken_at, now()), lease_until = least(lease_until, now())
			where `+pg.Steady+` and (due_at > now() + `+pg.Interval(farthestDue)+` or due_at is not null and lease_until > now() + `+
		pg.Interval(longestLease)+`)
			returning id
		), notices as (
			update processor_notices set due_at = now() where `+pg.Steady+` and due_at > now() + `+pg.Interval(farthestDue)+`
			returning id
		), steps as (
			update transitions set due_at = now(), lease = null, lease_until = null
			where `+pg.Steady+` and state = 'open' and greatest(due_at, lease_until) > now() + `+pg.Interval(longestLease)+`
			returning id
		)
		select (select count(*) from due) + (select count(*) from notices) + (select count(*) from steps)`)
	return corrected, unavailable.Wrap("correct when charges are due", err)
}
