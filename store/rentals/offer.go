package rentals

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

const metresPerDegree = 111_195 // of latitude

// FindOffers implements httpapi.Offers. Positions and states are those in Postgres, which may not
// have the latest reported ones yet.
func (p Bookings) FindOffers(ctx context.Context, q rental.OfferQuery) ([]rental.Offer, rental.OfferMark, error) {
	found, next, err := p.findOffers(ctx, q, "from", "to")
	return found, next, unavailable.Wrap("find vehicles", err)
}

// findOffers names the fields of the time as from and to in its errors.
func (p Bookings) findOffers(ctx context.Context, q rental.OfferQuery, from, to string) ([]rental.Offer, rental.OfferMark, error) {
	common, err := p.readAgencyOffer(ctx, q.Agency)
	if err != nil {
		return nil, rental.OfferMark{}, err
	}
	s := search{q: q, around: q.Near, decimals: common.terms.Rules.PositionDecimals, span: q.Span(common.terms.Rules)}
	if err := s.span.Check(q.Now, common.terms.Rules.Shortest(), from, to); err != nil {
		return nil, rental.OfferMark{}, err
	}
	if q.Station != 0 {
		i := slices.IndexFunc(common.stations, func(s telematics.Station) bool { return s.ID == q.Station })
		if i < 0 {
			return nil, rental.OfferMark{}, &rental.FieldError{Field: "station_id", Message: "must be a station of the agency"}
		}
		at := common.stations[i]
		s.around, s.q.Radius = at.Position(), int64(common.terms.Rules.StationRadius)
		if !q.HasNear {
			s.q.Near = s.around
		}
	}
	var offers []rental.Offer
	after, looked, chunk := q.After, 0, 2*max(q.Limit, 1)
	radius := s.q.Radius
	if q.Station == 0 {
		radius = min(radius, max(firstRadius, after.Metres))
	}
	for {
		candidates, err := p.candidates(ctx, s, radius, after, chunk, common)
		if err != nil {
			return nil, rental.OfferMark{}, err
		}
		for _, c := range candidates {
			after = rental.OfferMark{Metres: c.Metres, Vehicle: c.Vehicle.ID}
			if o, ok := q.Offer(c, s.span); ok {
				if at, stands := telematics.NearestStation(common.stations, o.Position, common.terms.Rules.StationRadius); stands {
					o.Station = &at
				}
				if offers = append(offers, o); len(offers) == q.Limit {
					return offers, rental.OfferMark{}, nil
				}
			}
		}
		looked += len(candidates)
		switch {
		case len(candidates) == chunk && looked >= maxCandidates:
			return offers, after, nil
		case len(candidates) == chunk:
			chunk *= 2
		case radius == s.q.Radius:
			return offers, rental.OfferMark{}, nil
		default:
			radius = min(s.q.Radius, radius*radiusGrowth)
		}
	}
}

// agencyOffer is what all offers of an agency have in common.
type agencyOffer struct {
	terms      rental.Terms
	bestEffort bool
	plans      map[string]*rental.Plan // by category; empty: of the others
	stations   []telematics.Station
}

// plan returns the plan of a category; nil: there is none.
func (m agencyOffer) plan(category string) *rental.Plan {
	if plan := m.plans[category]; plan != nil {
		return plan
	}
	return m.plans[""]
}

func (p Bookings) readAgencyOffer(ctx context.Context, agency telematics.AgencyID) (agencyOffer, error) {
	var rows []struct {
		Terms      vehicles.TermsRow `db:"terms"`
		BestEffort bool              `db:"best_effort_unlock"`
		Plans      []byte            `db:"plans"`    // JSON
		Stations   []byte            `db:"stations"` // JSON
	}
	err := p.DB.Clients.SelectContext(ctx, &rows, `
		select `+vehicles.TermsColumns+`, a.best_effort_unlock,
			(
				select json_object_agg(t.category, t.tariff) from (`+currentTariffs+`) t
			) as plans,
			(
				select json_agg(json_build_object('ID', id, 'AgencyID', agency_id, 'Name', name, 'Address', address,
					'Latitude', latitude, 'Longitude', longitude) order by id)
				from stations where agency_id = a.id
			) as stations
		from agencies a where a.id = $1`, agency)
	if err != nil || len(rows) == 0 { // an unknown agency has no vehicles
		return agencyOffer{}, err
	}
	row := rows[0]
	m := agencyOffer{bestEffort: row.BestEffort}
	if m.terms, err = row.Terms.Decode(); err != nil {
		return agencyOffer{}, err
	}
	if row.Plans != nil {
		if err := json.Unmarshal(row.Plans, &m.plans); err != nil {
			return agencyOffer{}, fmt.Errorf("tariffs of agency %d: %w", agency, err)
		}
	}
	if row.Stations != nil {
		err = json.Unmarshal(row.Stations, &m.stations)
	}
	return m, err
}

// search is where and for when vehicles are wanted.
type search struct {
	q        rental.OfferQuery
	around   telematics.Position // the middle of the circle
	decimals int                 // of positions that clients see
	span     rental.Span
}

// candidateRow is a vehicle with what decides about offering it.
type candidateRow struct {
	rental.Candidate
	contact telematics.Contact // only the actions
	hourly  *rental.Minor
	deposit rental.Minor
	lamps   []byte // JSON
}

// fields are where the columns of selectCandidates go.
func (r *candidateRow) fields() []any {
	v := &r.Vehicle
	return slices.Concat([]any{&r.Metres, &r.Position.Latitude, &r.Position.Longitude, &r.hourly, &r.deposit},
		vehicles.DescriptionFields(v), []any{vehicles.Actions(&v.Actions), vehicles.Actions(&r.contact.Actions)}, vehicles.UnitFields(v),
		[]any{pg.OrZero(&r.Connectivity), &r.Energy, &r.Range, &r.lamps, &r.Taken})
}

// wholeNumber is the SQL of a number in JSON, rounded down; null: it is none, or far too large.
func wholeNumber(json string) string {
	return `case when jsonb_typeof(` + json + `) = 'number' and ` + json + ` between '-1000000' and '1000000'
		then floor((` + json + `)::numeric)::int end`
}

// selectCandidates selects vehicles by their distance from $1, $2, after $3, $4, within $6 metres
// around $7, $8, up to $5. Positions are rounded before anything is computed of them, so that no
// distance tells more than they do. The nearest ones of the agency and the category are selected
// first, so that all other data is read for them alone.
var selectCandidates = `
	select near.metres, near.lat as latitude, near.lon as longitude, v.hourly_rate, v.deposit, ` + vehicles.DescriptionColumns + `,
		v.capabilities, u.actions, u.serial, u.protocol, u.installation,
		case when u.serial is not null then ` + vehicles.Connectivity(`$14`, `$15`) + ` end as connectivity,
		` + wholeNumber(`s.fields->case v.powertrain
			when 'electric' then 'telemetry.battery_level_percent' else 'telemetry.fuel_level_percent' end->'v'`) + ` as energy,
		` + wholeNumber(`s.fields->'telemetry.remaining_range_km'->'v'`) + ` as range,
		s.fields->'diagnostics.warning_lamps'->'v' as lamps,
		` + isTaken(`v.id`, `$16::timestamptz`, `$17::timestamptz`, `$20::timestamptz`) + ` as taken
	from (
		select vehicle_id, lat, lon, metres
		from (
			select vehicle_id, lat, lon, round(` + pg.Metres(`lat`, `lon`, `$1::float8`, `$2::float8`) + `)::bigint as metres
			from (
				select p.vehicle_id, round(latitude * 10 ^ $9::int) / 10 ^ $9 as lat, round(longitude * 10 ^ $9) / 10 ^ $9 as lon
				from positions p
					join vehicles v on v.id = p.vehicle_id and v.agency_id = $21 and v.status not in ('maintenance', 'inactive')
						and $22::text in ('', v.category)
				where band = any (array(select generate_series(floor($18::float8 * 50)::int, floor($19::float8 * 50)::int)::smallint))
					and (longitude between $10::float8 and $11::float8 or longitude between $12::float8 and $13::float8)
			) rounded
			where ` + pg.Metres(`lat`, `lon`, `$7::float8`, `$8::float8`) + ` <= $6::float8
		) inside
		where (metres, vehicle_id) > ($3::bigint, $4::bigint)
		order by metres, vehicle_id
		limit $5
	) near
		join vehicles v on v.id = near.vehicle_id
		left join units u on u.vehicle_id = v.id
		left join snapshots s on s.vehicle_id = v.id
	order by near.metres, near.vehicle_id`

// candidates returns up to limit of the vehicles within a radius, after a mark.
func (p Bookings) candidates(
	ctx context.Context, s search, radius int64, after rental.OfferMark, limit int, m agencyOffer,
) ([]rental.Candidate, error) {
	// By how much a position may be rounded into the circle, at most.
	rounding := int64(metresPerDegree)
	for range s.decimals {
		rounding /= 10
	}
	box := s.around.Around(radius + rounding + 1)
	// A box across the 180th meridian is two.
	west, east := box.West, box.East
	if box.West > box.East {
		west, east = -180, box.East
	} else {
		box.West = 181 // the second box is empty
	}
	// A prepared statement: planning takes longer than a search.
	convert := func(r *candidateRow) (rental.Candidate, error) { return r.candidate(m) }
	return pg.Read(ctx, p.DB.Clients, (*candidateRow).fields, convert, selectCandidates,
		s.q.Near.Latitude, s.q.Near.Longitude, after.Metres, after.Vehicle, limit, radius, s.around.Latitude, s.around.Longitude,
		s.decimals, west, east, box.West, 180, pg.Timestamp(s.q.Now), int64(telematics.OnlineFor.Seconds()),
		pg.Timestamp(s.span.From), pg.Timestamp(s.span.To), box.South, box.North, pg.Timestamp(s.q.Now.Add(rental.MaxLate)), s.q.Agency,
		s.q.Category)
}

func (r *candidateRow) candidate(m agencyOffer) (rental.Candidate, error) {
	c := r.Candidate
	c.Terms, c.Plan, c.Rate = m.terms, m.plan(c.Vehicle.Category), vehicles.RateOf(r.hourly, r.deposit)
	c.Lacking = isLacking(c.Vehicle, r.contact)
	c.NotOpened = !m.bestEffort && dialects.Spoken.OpensLate(c.Vehicle, telematics.Unlock)
	if r.lamps != nil {
		if err := json.Unmarshal(r.lamps, &c.Lamps); err != nil {
			return rental.Candidate{}, fmt.Errorf("vehicle %d: %w", c.Vehicle.ID, err)
		}
	}
	return c, nil
}

// isLacking reports whether a vehicle lacks a command that a rental needs.
func isLacking(v telematics.Vehicle, c telematics.Contact) bool {
	t := telematics.Twin{Vehicle: v, Contact: c}
	return slices.ContainsFunc(rental.Needs, func(a telematics.Action) bool { return !dialects.Spoken.CanOrder(t, a) })
}

// FreeTimes implements httpapi.Offers: none for a vehicle that clients cannot book at all.
func (p Bookings) FreeTimes(
	ctx context.Context, agency telematics.AgencyID, id telematics.VehicleID, within rental.Span, now time.Time,
) ([]rental.Span, error) {
	free, err := p.freeTimes(ctx, rental.Draft{Self: true, Agency: agency, Vehicle: id}, within, now)
	return free, unavailable.Wrap("read when a vehicle is free", err)
}

func (p Bookings) freeTimes(ctx context.Context, d rental.Draft, within rental.Span, now time.Time) ([]rental.Span, error) {
	var facts rental.Facts
	err := readVehicle(ctx, p.DB.Lists, d, "", &facts)
	if err == nil {
		err = d.CheckVehicle(facts)
	}
	if refusal, ok := errors.AsType[*telematics.Error](err); ok && refusal.Code == rental.VehicleNotAvailable {
		return []rental.Span{}, nil
	}
	if err != nil {
		return nil, err
	}
	taken, err := pg.Read(ctx, p.DB.Lists, func(s *rental.Span) []any { return []any{pg.UTC(&s.From), pg.UTC(&s.To)} }, pg.Itself, `
		select start_at, end_at from (`+takenTimes(`$1`, `$4::timestamptz`)+`) t where start_at < $3 and end_at > $2 order by start_at`,
		d.Vehicle, pg.Timestamp(within.From), pg.Timestamp(within.To), pg.Timestamp(now.Add(rental.MaxLate)))
	if err != nil {
		return nil, err
	}
	return within.Without(taken), nil
}
