package rentals

import (
	"context"
	"time"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Utilisation returns for how long the vehicles of an agency (zero: of all) that are in service now
// were rented within a time. Rentals by another agency, from which a vehicle has moved, do not
// count.
func (p Bookings) Utilisation(ctx context.Context, agency telematics.AgencyID, from, to time.Time) (rental.Utilisation, error) {
	var found struct {
		Vehicles     int
		Microseconds int64
	}
	err := p.DB.Lists.GetContext(ctx, &found, `
		with fleet as (
			select id, agency_id from vehicles
			where ($1::bigint = 0 or agency_id = $1) and status not in ('maintenance', 'inactive')
		)
		select (select count(*) from fleet) as vehicles,
			coalesce(sum(1000000 * extract(epoch from least(b.ended_at, $3) - greatest(b.started_at, $2))), 0)::bigint as microseconds
		from bookings b join fleet f on f.id = b.vehicle_id and f.agency_id = b.agency_id
		where b.started_at < $3 and (b.state = 'active' or b.ended_at > $2)`, agency, pg.Timestamp(from), pg.Timestamp(to))
	if err != nil {
		return rental.Utilisation{}, unavailable.Wrap("read the utilisation", err)
	}
	return rental.Utilisation{Vehicles: found.Vehicles, Used: time.Duration(found.Microseconds) * time.Microsecond}, nil
}
