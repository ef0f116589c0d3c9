package rentals

import (
	"context"
	"time"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// noticesKept is how long a handled notice is stored, so that a repetition is recognised.
const noticesKept = 30 * 24 * time.Hour

// Notices stores the notices of the payment processor. It is safe for concurrent use.
type Notices struct{ DB *pg.DB }

// Keep implements rental.Notices.
func (p Notices) Keep(ctx context.Context, n rental.Notice) error {
	err := p.DB.Exec(ctx, `
		insert into processor_notices (id, type, object, kind, live) values ($1, $2, $3, $4, $5)
		on conflict (id) do nothing`,
		n.ID, n.Type, n.Object, n.Kind, n.Live)
	return unavailable.Wrap("keep a notice of the payment processor", err)
}

// TakeNotices implements rental.Notices, by Postgres's clock.
func (p Notices) TakeNotices(ctx context.Context, limit int, lease time.Duration) (notices []rental.Notice, err error) {
	err = p.DB.Pool.SelectContext(ctx, &notices, `
		with due as (
			select id from processor_notices
			where due_at <= now()
			order by due_at limit $1
			for update skip locked
		)
		update processor_notices n set attempts = attempts + 1, due_at = clock_timestamp() + $2 * interval '1 microsecond'
		from due where n.id = due.id
		returning n.id, n.type, n.object, n.kind, n.live, n.attempts`,
		limit, lease.Microseconds())
	return notices, unavailable.Wrap("take notices of the payment processor", err)
}

// Handled implements rental.Notices. A notice that is handled stays so.
func (p Notices) Handled(ctx context.Context, id string, again time.Time) error {
	err := p.DB.Exec(ctx, `update processor_notices set due_at = $2 where id = $1 and due_at is not null`, id, pg.Timestamp(again))
	return unavailable.Wrap("give a notice of the payment processor back", err)
}

// ForgetNotices removes notices that were handled long ago, up to limit of them, and reports
// whether there may be others.
func ForgetNotices(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	return db.Forget(ctx, "forget notices of the payment processor", `
		delete from processor_notices
		where id in (
			select id from processor_notices
			where received_at <= now() - `+pg.Interval(noticesKept)+` and due_at is null
			order by received_at limit $1 for update skip locked)`, limit)
}
