package rentals

import (
	"context"
	"time"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Utilisation implements httpapi.Bookings. Rentals by another agency, from which a vehicle has
// moved, do not count.
func (p Bookings) Utilisation(ctx context.Context, agency telematics.AgencyID, from, to time.Time) ([]rental.Use, error) {
	var found []rental.Use
	err := p.DB.Lists.SelectContext(ctx, &found, `
		select v.id as vehicle,
			coalesce(1000000000 * extract(epoch from sum(least(b.ended_at, $3) - greatest(b.started_at, $2))
				filter (where b.id is not null)), 0)::bigint as rented
		from vehicles v left join bookings b on b.vehicle_id = v.id and b.agency_id = v.agency_id
			and b.started_at < $3 and (b.state = 'active' or b.ended_at > $2)
		where ($1::bigint = 0 or v.agency_id = $1) and v.status not in ('maintenance', 'inactive')
		group by v.id`, agency, pg.Timestamp(from), pg.Timestamp(to))
	return found, unavailable.Wrap("read the utilisation", err)
}
