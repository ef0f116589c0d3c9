package vehicles

import (
	"context"
	"fmt"

	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// readRecord reads what is on record of what the changes name.
func readRecord(ctx context.Context, db pg.Querier, c FleetChanges) (record, error) {
	var on record
	var err error
	vehicles, agencies := numbers(c.vehicles), numbers(c.agencies)
	for _, parts := range [][]*part{c.stations, c.vehicles} {
		for _, p := range parts {
			agencies = append(agencies, peek[int64](p, "agency_id"))
		}
	}
	if on.vehicles, err = readVehicles(ctx, db, vehicles); err != nil {
		return record{}, err
	}
	if on.stations, err = readStations(ctx, db, numbers(c.stations)); err != nil {
		return record{}, err
	}
	for _, s := range on.stations {
		agencies = append(agencies, int64(s.AgencyID))
	}
	for _, v := range on.vehicles {
		agencies = append(agencies, int64(v.AgencyID))
	}
	if on.agencies, err = readAgencies(ctx, db, agencies); err != nil {
		return record{}, err
	}
	if on.areas, err = readAreas(ctx, db, c.agencies); err != nil {
		return record{}, err
	}
	if on.codes, err = readCodes(ctx, db, c.agencies); err != nil {
		return record{}, err
	}
	on.units, err = readUnits(ctx, db, units(c.vehicles))
	return on, err
}

func numbers(parts []*part) []int64 { return pg.Map(parts, func(p *part) int64 { return p.number }) }

func readAgencies(ctx context.Context, db pg.Querier, ids []int64) (map[telematics.AgencyID]agency, error) {
	var rows []struct {
		telematics.Agency
		Terms TermsRow `db:"terms"`
		Rated bool     `db:"rated"`
	}
	err := db.SelectContext(ctx, &rows, `
		select id, code, name, best_effort_unlock as besteffortunlock, `+TermsColumns+`,
			exists (select from vehicles v where v.agency_id = a.id and v.hourly_rate is not null) as rated
		from agencies a where id = any ($1)`, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	found := map[telematics.AgencyID]agency{}
	for _, r := range rows {
		terms, err := r.Terms.Decode()
		if err != nil {
			return nil, fmt.Errorf("agency %d: %w", r.ID, err)
		}
		found[r.ID] = agency{r.Agency, terms, map[string]rental.Plan{}, r.Rated}
	}
	tariffs, err := readTariffs(ctx, db, ids)
	if err != nil {
		return nil, err
	}
	for _, r := range tariffs {
		if plan, err := r.plan(found[r.Agency].Currency); err != nil {
			return nil, err
		} else if plan != nil {
			found[r.Agency].tariffs[r.Category] = *plan
		}
	}
	return found, nil
}

// readCodes returns the agencies that have the codes which some parts name.
func readCodes(ctx context.Context, db pg.Querier, named []*part) (map[string]telematics.AgencyID, error) {
	var codes []string
	for _, p := range named {
		if code := peek[string](p, "code"); agencyCodePattern.MatchString(code) {
			codes = append(codes, code)
		}
	}
	return pg.Pairs[string, telematics.AgencyID](ctx, db, `select code, id from agencies where code = any ($1)`, pq.Array(codes))
}

func readStations(ctx context.Context, db pg.Querier, ids []int64) (map[telematics.StationID]telematics.Station, error) {
	var stations []telematics.Station
	err := db.SelectContext(ctx, &stations, `select `+StationColumns+` from stations where id = any ($1)`, pq.Array(ids))
	found := map[telematics.StationID]telematics.Station{}
	for _, s := range stations {
		found[s.ID] = s
	}
	return found, err
}

func readVehicles(ctx context.Context, db pg.Querier, ids []int64) (map[telematics.VehicleID]vehicle, error) {
	found := map[telematics.VehicleID]vehicle{}
	var hourly *rental.Minor
	var deposit rental.Minor
	var byBookings telematics.VehicleStatus
	fields := func(t *telematics.Twin) []any {
		return append(recordFields(t), &hourly, &deposit, pg.OrZero(&byBookings))
	}
	_, err := pg.Read(ctx, db, fields, func(t *telematics.Twin) (v vehicle, _ error) {
		found[t.ID] = vehicle{asRecorded(t.Vehicle), RateOf(hourly, deposit), byBookings}
		return v, nil
	}, `
		select `+recordColumns+`, v.hourly_rate, v.deposit, by_bookings.status as by_bookings
		from vehicles v left join units u on u.vehicle_id = v.id
			cross join lateral (select v.id) as f
			left join lateral (`+statusByBookings+`) as by_bookings (status) on true
		where v.id = any ($1)`, pq.Array(ids))
	return found, err
}

// Rate implements httpapi.FleetEditor.
func (f *Fleet) Rate(ctx context.Context, id telematics.VehicleID) (*rental.Rate, rental.Currency, error) {
	var hourly *rental.Minor
	var deposit rental.Minor
	var currency rental.Currency
	found, err := pg.One(ctx, f.db.Pool, []any{&hourly, &deposit, &currency}, `
		select v.hourly_rate, v.deposit, a.currency from vehicles v join agencies a on a.id = v.agency_id where v.id = $1`, id)
	switch {
	case err != nil:
		return nil, "", unavailable.Wrap("read the rate of a vehicle", err)
	case !found:
		return nil, "", telematics.NoSuchVehicle(id)
	}
	return RateOf(hourly, deposit), currency, nil
}

// RateOf returns nil where a vehicle has no hourly rate.
func RateOf(hourly *rental.Minor, deposit rental.Minor) *rental.Rate {
	if hourly == nil {
		return nil
	}
	return &rental.Rate{Hourly: *hourly, Deposit: deposit}
}

func readUnits(ctx context.Context, db pg.Querier, serials []telematics.Unit) (map[telematics.Unit]unit, error) {
	found := map[telematics.Unit]unit{}
	var serial telematics.Unit
	var of unit
	err := pg.Each(ctx, db, []any{
		&serial, pg.OrZero(&of.vehicle), pg.OrZero(&of.agency), &of.protocol, (*installation)(&of.installation),
	}, func() error {
		found[serial] = of
		return nil
	}, `
		select u.serial, u.vehicle_id, v.agency_id, u.protocol, u.installation
		from units u left join vehicles v on v.id = u.vehicle_id
		where u.serial = any ($1)`, pq.Array(serials))
	return found, err
}
