package vehicles

import (
	"context"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// StationRow is a row of stations.
type StationRow struct {
	ID        telematics.StationID `db:"id"`
	AgencyID  telematics.AgencyID  `db:"agency_id"`
	Name      string               `db:"name"`
	Address   string               `db:"address"`
	Latitude  float64              `db:"latitude"`
	Longitude float64              `db:"longitude"`
}

// Stations returns the stations of an agency, or of all for zero, by id.
func (f *Fleet) Stations(ctx context.Context, agency telematics.AgencyID) ([]telematics.Station, error) {
	var rows []StationRow
	err := f.db.Pool.SelectContext(ctx, &rows, `
		select id, agency_id, name, address, latitude, longitude from stations
		where $1::bigint = 0 or agency_id = $1
		order by id`, agency)
	if err != nil {
		return nil, unavailable.Wrap("read stations", err)
	}
	stations := make([]telematics.Station, len(rows))
	for i, row := range rows {
		stations[i] = telematics.Station(row)
	}
	return stations, nil
}
