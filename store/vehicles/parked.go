package vehicles

import (
	"context"
	"strconv"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Parked returns where vehicles stand. One that drives, or whose position is not known,
// is left out.
func (f *Fleet) Parked(ctx context.Context) ([]telematics.Parked, error) {
	// As text: what another version of the program wrote must not spoil all the others.
	var rows []struct {
		Agency    telematics.AgencyID `db:"agency_id"`
		Latitude  string              `db:"latitude"`
		Longitude string              `db:"longitude"`
		Speed     *string             `db:"speed"`
		Ignition  *string             `db:"ignition"`
	}
	err := f.db.Lists.SelectContext(ctx, &rows, `
		select v.agency_id, f."location.latitude" ->> 'v' as latitude, f."location.longitude" ->> 'v' as longitude, f."telemetry.speed_kmh" ->> 'v' as speed, f."telemetry.ignition" ->> 'v' as ignition
		from snapshots s join vehicles v on v.id = s.vehicle_id,
			-- Opens each snapshot once, which an operator for each field would do again and again.
			jsonb_to_record(s.fields) as f ("location.latitude" jsonb, "location.longitude" jsonb, "telemetry.speed_kmh" jsonb, "telemetry.ignition" jsonb)
		where f."location.latitude" ->> 'v' is not null and f."location.longitude" ->> 'v' is not null`)
	if err != nil {
		return nil, unavailable.Wrap("read where vehicles stand", err)
	}
	var parked []telematics.Parked
	for _, row := range rows {
		latitude, err1 := strconv.ParseFloat(row.Latitude, 64)
		longitude, err2 := strconv.ParseFloat(row.Longitude, 64)
		if err1 != nil || err2 != nil || drives(row.Speed) {
			continue
		}
		parked = append(parked, telematics.Parked{
			Agency: row.Agency, Position: telematics.Position{Latitude: latitude, Longitude: longitude}, Off: pg.Deref(row.Ignition) == "off",
		})
	}
	return parked, nil
}

func drives(speed *string) bool {
	kmh, err := strconv.ParseFloat(pg.Deref(speed), 64)
	return err == nil && kmh > telematics.MovingKmh
}
