package vehicles

import (
	"context"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

type agencyRow struct {
	ID       telematics.AgencyID `db:"id"`
	Code     string              `db:"code"`
	Name     string              `db:"name"`
	Vehicles int                 `db:"vehicles"`
	Stations int                 `db:"stations"`
}

func (r agencyRow) agency() telematics.ListedAgency {
	return telematics.ListedAgency{
		Agency: telematics.Agency{ID: r.ID, Code: r.Code, Name: r.Name}, Vehicles: r.Vehicles, Stations: r.Stations,
	}
}

// Agencies returns agencies by descending id, which is the position of a page.
func (f *Fleet) Agencies(ctx context.Context, q telematics.AgencyQuery) ([]telematics.ListedAgency, error) {
	found, err := pg.List(ctx, f.db.Lists, agencyRow.agency, `
		select id, code, name,
			(select count(*) from vehicles v where v.agency_id = a.id) as vehicles,
			(select count(*) from stations s where s.agency_id = a.id) as stations
		from agencies a
		where ($1::bigint = 0 or id = $1) and ($2::bigint = 0 or id < $2)
		order by id desc
		limit nullif($3::bigint, 0)`, q.Agency, q.Before, q.Limit)
	return found, unavailable.Wrap("read agencies", err)
}

// ListStations returns stations by descending id, which is the position of a page.
func (f *Fleet) ListStations(ctx context.Context, q telematics.AgencyQuery) ([]telematics.Station, error) {
	found, err := pg.List(ctx, f.db.Lists, StationRow.station, `
		select id, agency_id, name, address, latitude, longitude from stations
		where ($1::bigint = 0 or agency_id = $1) and ($2::bigint = 0 or id < $2)
		order by id desc
		limit nullif($3::bigint, 0)`, q.Agency, q.Before, q.Limit)
	return found, unavailable.Wrap("read stations", err)
}
