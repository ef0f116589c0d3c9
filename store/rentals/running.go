package rentals

import (
	"context"

	"github.com/lib/pq"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Running returns the vehicles with a running booking whose units speak one of the protocols; of
// each its id, unit and protocol.
func (p Bookings) Running(ctx context.Context, protocols []telematics.Protocol) (running []telematics.Vehicle, err error) {
	err = p.DB.Lists.SelectContext(ctx, &running, `
		select b.vehicle_id as id, u.serial as unit, u.protocol
		from units u join bookings b on b.vehicle_id = u.vehicle_id and b.state = 'active'
		where u.protocol = any ($1::text[])`, pq.Array(protocols))
	return running, unavailable.Wrap("read vehicles of running bookings", err)
}
