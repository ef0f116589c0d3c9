package vehicles

import (
	"context"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Agencies implements httpapi.Agencies.
func (f *Fleet) Agencies(ctx context.Context, q telematics.AgencyQuery) (found []telematics.ListedAgency, err error) {
	err = f.db.Lists.SelectContext(ctx, &found, `
		select id, code, name,
			(select count(*) from vehicles v where v.agency_id = a.id) as vehicles,
			(select count(*) from stations s where s.agency_id = a.id) as stations
		from agencies a
		where ($1::bigint = 0 or id = $1) and ($2::bigint = 0 or id < $2)
		order by id desc
		limit nullif($3::bigint, 0)`, q.Agency, q.Before, q.Limit)
	return found, unavailable.Wrap("read agencies", err)
}

// ListStations implements httpapi.Agencies.
func (f *Fleet) ListStations(ctx context.Context, q telematics.AgencyQuery) (found []telematics.Station, err error) {
	err = f.db.Lists.SelectContext(ctx, &found, `
		select `+StationColumns+` from stations
		where ($1::bigint = 0 or agency_id = $1) and ($2::bigint = 0 or id < $2)
		order by id desc
		limit nullif($3::bigint, 0)`, q.Agency, q.Before, q.Limit)
	return found, unavailable.Wrap("read stations", err)
}
