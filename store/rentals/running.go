package rentals

import (
	"context"

	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Running returns the vehicles with a running booking whose units speak one of the protocols; of
// each its id, unit and protocol.
func (p Bookings) Running(ctx context.Context, protocols []telematics.Protocol) ([]telematics.Vehicle, error) {
	type row struct {
		ID       telematics.VehicleID `db:"id"`
		Unit     telematics.Unit      `db:"unit"`
		Protocol telematics.Protocol  `db:"protocol"`
	}
	running, err := pg.List(ctx, p.DB.Lists, func(r row) telematics.Vehicle {
		return telematics.Vehicle{ID: r.ID, Unit: r.Unit, Protocol: r.Protocol}
	}, `
		select b.vehicle_id as id, u.serial as unit, u.protocol
		from units u join bookings b on b.vehicle_id = u.vehicle_id and b.state = 'active'
		where u.protocol = any ($1::text[])`, pq.Array(protocols))
	return running, unavailable.Wrap("read vehicles of running bookings", err)
}
