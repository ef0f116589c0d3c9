package vehicles

import (
	"context"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// readRecord reads what is on record of what the changes name.
func readRecord(ctx context.Context, db sqlx.QueryerContext, c FleetChanges) (record, error) {
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

func readAgencies(ctx context.Context, db sqlx.QueryerContext, ids []int64) (map[telematics.AgencyID]agency, error) {
	var rows []struct {
		telematics.Agency
		Terms TermsRow `db:"terms"`
	}
	err := sqlx.SelectContext(ctx, db, &rows, `
		select id, code, name, best_effort_unlock as besteffortunlock, `+TermsColumns+` from agencies a where id = any ($1)`, pq.Array(ids))
	if err != nil {
		return nil, err
	}
	found := map[telematics.AgencyID]agency{}
	for _, r := range rows {
		terms, err := r.Terms.Decode()
		if err != nil {
			return nil, fmt.Errorf("agency %d: %w", r.ID, err)
		}
		found[r.ID] = agency{r.Agency, terms, map[string]rental.Plan{}}
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
func readCodes(ctx context.Context, db sqlx.QueryerContext, named []*part) (map[string]telematics.AgencyID, error) {
	var codes []string
	for _, p := range named {
		if code := peek[string](p, "code"); agencyCodePattern.MatchString(code) {
			codes = append(codes, code)
		}
	}
	var rows []telematics.Agency
	err := sqlx.SelectContext(ctx, db, &rows, `select id, code from agencies where code = any ($1)`, pq.Array(codes))
	found := map[string]telematics.AgencyID{}
	for _, r := range rows {
		found[r.Code] = r.ID
	}
	return found, err
}

func readStations(ctx context.Context, db sqlx.QueryerContext, ids []int64) (map[telematics.StationID]telematics.Station, error) {
	var stations []telematics.Station
	err := sqlx.SelectContext(ctx, db, &stations, `select `+StationColumns+` from stations where id = any ($1)`, pq.Array(ids))
	found := map[telematics.StationID]telematics.Station{}
	for _, s := range stations {
		found[s.ID] = s
	}
	return found, err
}

func readVehicles(ctx context.Context, db sqlx.QueryerContext, ids []int64) (map[telematics.VehicleID]vehicle, error) {
	var rows []struct {
		Row
		rateRow
		ByBookings *telematics.VehicleStatus `db:"by_bookings"`
	}
	err := sqlx.SelectContext(ctx, db, &rows, `
		select `+recordColumns+`, v.hourly_rate, v.deposit, by_bookings.status as by_bookings
		from vehicles v left join units u on u.vehicle_id = v.id
			cross join lateral (select v.id) as f
			left join lateral (`+statusByBookings+`) as by_bookings (status) on true
		where v.id = any ($1)`, pq.Array(ids))
	found := map[telematics.VehicleID]vehicle{}
	for _, r := range rows {
		found[telematics.VehicleID(r.ID)] = vehicle{r.Vehicle(), r.rate(), pg.Deref(r.ByBookings)}
	}
	return found, err
}

// Rate implements httpapi.FleetEditor.
func (f *Fleet) Rate(ctx context.Context, id telematics.VehicleID) (*rental.Rate, rental.Currency, error) {
	var rows []struct {
		rateRow
		Currency rental.Currency `db:"currency"`
	}
	err := f.db.Pool.SelectContext(ctx, &rows, `
		select v.hourly_rate, v.deposit, a.currency from vehicles v join agencies a on a.id = v.agency_id where v.id = $1`, id)
	switch {
	case err != nil:
		return nil, "", unavailable.Wrap("read the rate of a vehicle", err)
	case len(rows) == 0:
		return nil, "", telematics.NoSuchVehicle(id)
	}
	return rows[0].rate(), rows[0].Currency, nil
}

type rateRow struct {
	Hourly  *rental.Minor `db:"hourly_rate"`
	Deposit rental.Minor  `db:"deposit"`
}

func (r rateRow) rate() *rental.Rate {
	if r.Hourly == nil {
		return nil
	}
	return &rental.Rate{Hourly: *r.Hourly, Deposit: r.Deposit}
}

func readUnits(ctx context.Context, db sqlx.QueryerContext, serials []telematics.Unit) (map[telematics.Unit]unit, error) {
	var rows []struct {
		Serial       telematics.Unit       `db:"serial"`
		Vehicle      *telematics.VehicleID `db:"vehicle_id"`
		Agency       *telematics.AgencyID  `db:"agency_id"`
		Protocol     telematics.Protocol   `db:"protocol"`
		Installation installation          `db:"installation"`
	}
	err := sqlx.SelectContext(ctx, db, &rows, `
		select u.serial, u.vehicle_id, v.agency_id, u.protocol, u.installation
		from units u left join vehicles v on v.id = u.vehicle_id
		where u.serial = any ($1)`, pq.Array(serials))
	found := map[telematics.Unit]unit{}
	for _, r := range rows {
		found[r.Serial] = unit{pg.Deref(r.Vehicle), pg.Deref(r.Agency), r.Protocol, telematics.Installation(r.Installation)}
	}
	return found, err
}

// revalued returns the agencies whose currency changes, and an error for each whose money on record
// would be in another currency than before: for vehicles whose rate the file does not name anew,
// and for bookings and charges in progress, unless it names rates or tariffs.
func (c FleetChanges) revalued(
	ctx context.Context, db sqlx.QueryerContext, on record, file FleetFile,
) (changing []telematics.AgencyID, problems []error, err error) {
	inFile := map[telematics.VehicleID]bool{}
	renamed := map[telematics.AgencyID]bool{}
	for i, p := range c.vehicles {
		v := file.Vehicles[i]
		inFile[v.ID] = true
		renamed[v.AgencyID] = renamed[v.AgencyID] || p.fields["hourly_rate"] != nil
	}
	for i, a := range file.Agencies {
		renamed[a.ID] = renamed[a.ID] || file.Tariffs[a.ID] != nil
		before, known := on.agencies[a.ID]
		if !known || before.Currency == file.Terms[a.ID].Currency {
			continue
		}
		changing = append(changing, a.ID)
		var rated []telematics.VehicleID
		if err := sqlx.SelectContext(ctx, db, &rated, `select id from vehicles where agency_id = $1 and hourly_rate is not null
			order by id`, a.ID); err != nil {
			return nil, nil, err
		}
		rated = slices.DeleteFunc(rated, func(id telematics.VehicleID) bool { return inFile[id] })
		var open struct {
			Bookings int `db:"bookings"`
			Charges  int `db:"charges"`
		}
		err := sqlx.GetContext(ctx, db, &open, `
			select (select count(*) from bookings where agency_id = $1 and currency = $2
					and state in ('upcoming', 'active')) as bookings,
				(select count(*) from charges c join bookings b on b.id = c.booking_id
					where b.agency_id = $1 and c.currency = $2
						and (c.due_at is not null or c.state in ('pending', 'unknown', 'requires_action', 'authorized'))) as charges`,
			a.ID, before.Currency)
		if err != nil {
			return nil, nil, err
		}
		refuse := func(format string, args ...any) {
			message := fmt.Sprintf("%s → %s: ", before.Currency, file.Terms[a.ID].Currency) + fmt.Sprintf(format, args...)
			problems = append(problems, problem{c.agencies[i].place, "currency", message})
		}
		switch {
		case len(rated) > 0:
			refuse("name the hourly_rate of vehicle%s anew in this file, or null: what is on record is in %s", list(rated), before.Currency)
		case !renamed[a.ID] && open.Bookings+open.Charges > 0:
			refuse(
				"%d bookings and %d charges in %s are open: name the rates of the vehicles anew in this file, or wait until these are done",
				open.Bookings, open.Charges, before.Currency,
			)
		}
	}
	return changing, problems, nil
}

// list returns the first ids of a list for a message.
func list(ids []telematics.VehicleID) string {
	const most = 10
	text := ""
	for i, id := range ids {
		switch {
		case i == most:
			return fmt.Sprintf("s%s and %d more", text, len(ids)-most)
		case i > 0:
			text += ","
		}
		text += fmt.Sprintf(" %d", id)
	}
	if len(ids) > 1 {
		return "s" + text
	}
	return text
}
