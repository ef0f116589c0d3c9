package rentals

import (
	"context"

	"github.com/lib/pq"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Running returns the vehicles with a running booking whose units speak one of the protocols; of
// each its id, unit and protocol.
func (p Bookings) Running(ctx context.Context, protocols []telematics.Protocol) ([]telematics.Vehicle, error) {
	var rows []struct {
		ID       telematics.VehicleID `db:"id"`
		Unit     telematics.Unit      `db:"unit"`
		Protocol telematics.Protocol  `db:"protocol"`
	}
	err := p.DB.Lists.SelectContext(ctx, &rows, `
		select b.vehicle_id as id, u.serial as unit, u.protocol
		from units u join bookings b on b.vehicle_id = u.vehicle_id and b.state = 'active'
		where u.protocol = any ($1::text[])`, pq.Array(protocols))
	if err != nil {
		return nil, unavailable.Wrap("read vehicles of running bookings", err)
	}
	vehicles := make([]telematics.Vehicle, len(rows))
	for i, row := range rows {
		vehicles[i] = telematics.Vehicle{ID: row.ID, Unit: row.Unit, Protocol: row.Protocol}
	}
	return vehicles, nil
}
