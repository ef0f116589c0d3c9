package rentals

import (
	"context"
	"time"

	"motorpool/rental"
	"motorpool/store/unavailable"
)

// Redate moves a booking, as it is and was, by a time. It is for development worlds, whose
// bookings must not grow old: no price changes, and the history does not tell of it.
func (p Bookings) Redate(ctx context.Context, id rental.BookingID, by time.Duration) error {
	_, err := p.DB.Pool.ExecContext(ctx, `
		update bookings
		set start_at = start_at + moved, end_at = end_at + moved,
			-- greatest() passes over a null, but what has not happened has no time
			started_at = case when started_at is not null then greatest(started_at, start_at) + moved end,
			ended_at = case when ended_at is not null then greatest(ended_at, start_at) + moved end,
			created_at = least(created_at, created_at + moved)
		from make_interval(secs => $2::double precision / 1000) as moved
		where id = $1`, int64(id), by.Milliseconds())
	return unavailable.Wrap("move a booking", translated(err))
}
