package alerts

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/alerts"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// number, flag, word and texts return the SQL of the value of a field in a snapshot s; null:
// unknown.
func number(f telematics.Field) string {
	return fmt.Sprintf(`case when jsonb_typeof(s.fields->'%[1]s'->'v') = 'number' then (s.fields->'%[1]s'->>'v')::float8 end`, f)
}

func flag(f telematics.Field) string {
	return fmt.Sprintf(`case when jsonb_typeof(s.fields->'%[1]s'->'v') = 'boolean' then (s.fields->'%[1]s'->'v')::boolean end`, f)
}

func word(f telematics.Field) string { return fmt.Sprintf(`s.fields->'%s'->>'v'`, f) }

func texts(f telematics.Field) string {
	return fmt.Sprintf(`case when jsonb_typeof(s.fields->'%[1]s'->'v') = 'array'
		then array(select jsonb_array_elements_text(s.fields->'%[1]s'->'v')) else '{}' end`, f)
}

// reportedAt returns the SQL of the vehicle's time of a field.
func reportedAt(f telematics.Field) string {
	return fmt.Sprintf(`to_timestamp((s.fields->'%s'->>'at')::float8 / 1000)`, f)
}

// openings are the doors and windows.
var openings = []telematics.Field{
	telematics.DoorFrontLeft, telematics.DoorFrontRight, telematics.DoorRearLeft, telematics.DoorRearRight, telematics.DoorTrunk,
	telematics.WindowFrontLeft, telematics.WindowFrontRight, telematics.WindowRearLeft, telematics.WindowRearRight, telematics.Sunroof,
}

// openOnes is the SQL of those that are open, by name: doors.trunk.
var openOnes = func() string {
	list := make([]string, len(openings))
	for i, f := range openings {
		_, name, _ := strings.Cut(f.String(), ".")
		list[i] = fmt.Sprintf(`case when %s in ('open', 'partially_open', 'tilted') then '%s' end`, word(f), name)
	}
	return `array_remove(array[` + strings.Join(list, ", ") + `]::text[], null)`
}()

// findChanged returns up to $2 vehicles, after vehicle $1, whose snapshots have changed, with their
// former positions.
const findChanged = `
	select s.vehicle_id, i.latitude, i.longitude
	from snapshots s left join alert_inputs i on i.vehicle_id = s.vehicle_id
	where s.vehicle_id > $1 and i.snapshot_at is distinct from s.updated_at
	order by s.vehicle_id limit $2`

// renewInputs extracts the inputs of vehicles $1, and returns their positions. The position of a
// vehicle whose ignition is on is not where it is parked.
var renewInputs = `
	with renewed as (
	insert into alert_inputs as i (vehicle_id, snapshot_at, ignition, charging, volts, energy, locked, opened, codes, lamps,
		service_km, latitude, longitude, located_at, parked_at)
	select s.vehicle_id, s.updated_at, ` + word(telematics.Ignition) + ` = 'on', ` + word(telematics.Charging) + ` = 'charging',
		` + number(telematics.OnboardV) + `,
		case v.powertrain when 'electric' then ` + number(telematics.Battery) + ` else ` + number(telematics.FuelLevel) + ` end,
		` + flag(telematics.IsLocked) + `, ` + openOnes + `,
		` + texts(telematics.DTCs) + ` || ` + texts(telematics.RawDTCs) + `, ` + texts(telematics.WarningLamps) + `,
		` + number(telematics.ServiceDueKm) + `,
		case when located.is then ` + number(telematics.Latitude) + ` end,
		case when located.is then ` + number(telematics.Longitude) + ` end,
		case when abs(extract(epoch from located.fix - ` + reportedAt(telematics.Latitude) + `)) > ` +
	fmt.Sprint(otherFixAfter.Seconds()) + ` then located.fix else ` + reportedAt(telematics.Latitude) + ` end,
		case when ` + word(telematics.Ignition) + ` = 'off' then ` + reportedAt(telematics.Ignition) + ` end
	from snapshots s join vehicles v on v.id = s.vehicle_id
		cross join lateral (select jsonb_typeof(s.fields->'location.latitude'->'v') = 'number'
			and jsonb_typeof(s.fields->'location.longitude'->'v') = 'number' as is,
			case when ` + word(telematics.LocatedAt) + ` ~ '^\d{4}-\d\d-\d\dT'
				then least((` + word(telematics.LocatedAt) + `)::timestamptz, ` + reportedAt(telematics.LocatedAt) + `) end as fix) located
	where s.vehicle_id = any ($1)
	order by s.vehicle_id
	on conflict (vehicle_id) do update set
		snapshot_at = excluded.snapshot_at, ignition = excluded.ignition, charging = excluded.charging, volts = excluded.volts,
		energy = excluded.energy, locked = excluded.locked, opened = excluded.opened, codes = excluded.codes, lamps = excluded.lamps,
		service_km = excluded.service_km, latitude = excluded.latitude, longitude = excluded.longitude,
		located_at = excluded.located_at,
		parked_at = case when excluded.parked_at is not null then coalesce(i.parked_at, excluded.parked_at) end,
		parked_latitude = case when excluded.parked_at is not null then i.parked_latitude end,
		parked_longitude = case when excluded.parked_at is not null then i.parked_longitude end
	returning vehicle_id, latitude, longitude
	) select r.*, v.agency_id from renewed r join vehicles v on v.id = r.vehicle_id`

// A vehicle is parked where it is when the ignition is off, and neither a client nor staff has it:
// at the first position from after the ignition was turned off, or when its booking or its
// maintenance has ended, in which it may have been carried.
const (
	inHands = `(select vehicle_id from bookings where state = 'active'
			union all select id from vehicles where status in ('maintenance', 'inactive'))`
	unpark = `
		update alert_inputs set parked_latitude = null, parked_longitude = null
		where vehicle_id in (select vehicle_id from alert_inputs
			where parked_latitude is not null and vehicle_id in ` + inHands + ` order by vehicle_id for update)`
	park = `
		update alert_inputs set parked_latitude = latitude, parked_longitude = longitude
		where vehicle_id in (select vehicle_id from alert_inputs
			where parked_latitude is null and latitude is not null and located_at >= parked_at
				and vehicle_id not in ` + inHands + ` order by vehicle_id for update)`
)

// position is where a vehicle is.
type position struct {
	Vehicle   telematics.VehicleID `db:"vehicle_id"`
	Agency    telematics.AgencyID  `db:"agency_id"`
	Latitude  *float64             `db:"latitude"`
	Longitude *float64             `db:"longitude"`
}

func (p position) sameAs(other position) bool {
	return pg.Deref(p.Latitude) == pg.Deref(other.Latitude) && pg.Deref(p.Longitude) == pg.Deref(other.Longitude)
}

// renew renews the inputs of all vehicles whose snapshots have changed, and notes the areas in
// which those are that have moved.
func (s *Store) renew(ctx context.Context) error {
	moved, err := s.renewAll(ctx)
	if err == nil {
		err = s.locate(ctx, moved)
	}
	if err != nil {
		s.checkedAll = time.Time{} // what has moved is found again
	}
	return unavailable.Wrap("read the states and areas of vehicles", err)
}

// renewAll reads all vehicles once: what changes meanwhile is for the next sweep.
func (s *Store) renewAll(ctx context.Context) (moved []position, err error) {
	for last, more := telematics.VehicleID(0), true; more; {
		more = false // where another instance sweeps
		if err = s.step(ctx, func(tx *sqlx.Tx) error {
			changed, some, err := renewInputsAfter(ctx, tx, last)
			if more = len(changed) == inputsBatch; more {
				last = changed[inputsBatch-1].Vehicle
			}
			moved = append(moved, some...)
			return err
		}); err != nil {
			return nil, err
		}
	}
	return moved, s.step(ctx, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, unpark)
		if err == nil {
			_, err = tx.ExecContext(ctx, park)
		}
		return err
	})
}

// renewInputsAfter renews the inputs of some vehicles after one, and returns those whose snapshots
// have changed, in order, and those that have moved.
func renewInputsAfter(ctx context.Context, tx *sqlx.Tx, last telematics.VehicleID) (changed, moved []position, err error) {
	if err := tx.SelectContext(ctx, &changed, findChanged, last, inputsBatch); err != nil || len(changed) == 0 {
		return nil, nil, err
	}
	var renewed []position
	ids, before := make([]int64, len(changed)), make(map[telematics.VehicleID]position, len(changed))
	for i, p := range changed {
		ids[i], before[p.Vehicle] = int64(p.Vehicle), p
	}
	if err := tx.SelectContext(ctx, &renewed, renewInputs, pq.Array(ids)); err != nil {
		return nil, nil, err
	}
	for _, p := range renewed {
		if !p.sameAs(before[p.Vehicle]) {
			moved = append(moved, p)
		}
	}
	return changed, moved, nil
}

// locate notes in which areas vehicles are: those that have moved, or come to another agency, or
// all, where areas have changed.
func (s *Store) locate(ctx context.Context, moved []position) error {
	if s.Areas == nil {
		return nil
	}
	var version string
	err := s.DB.Pool.GetContext(ctx, &version, `
		select coalesce(md5(string_agg(version::text, ',' order by agency_id, name)), '') from areas`)
	if err != nil {
		return err
	}
	all := version != s.areasVersion || time.Since(s.checkedAll) > checkAllEvery
	var others []position // that have moved to another agency, or whose alert may have ended
	if err := s.DB.Lists.SelectContext(ctx, &others, `
			select i.vehicle_id, v.agency_id, i.latitude, i.longitude
			from alert_inputs i join vehicles v on v.id = i.vehicle_id
			where $1 or i.outside is null and i.latitude is not null or i.vehicle_id = any ($2)
			order by i.vehicle_id`, all, pq.Array(s.drifted)); err != nil {
		return err
	}
	if all {
		moved = nil
	}
	if moved = append(moved, others...); len(moved) > 0 {
		if err := s.noteAreas(ctx, moved); err != nil {
			return err
		}
	}
	if all {
		s.areasVersion, s.checkedAll = version, time.Now()
	}
	return nil
}

// noteAreas notes in which areas vehicles are. A receiver errs: what has an open alert has left, or
// come back, where no place near to it says otherwise.
func (s *Store) noteAreas(ctx context.Context, of []position) error {
	open, err := pg.Pairs[telematics.VehicleID, string](ctx, s.DB.Pool, `
		select a.vehicle_id, string_agg(a.rule, ' ') from alerts a join vehicles v on v.id = a.vehicle_id and v.agency_id = a.agency_id
		where a.no is not null and a.cleared_at is null and a.rule in (`+quoted(alerts.OutsideArea, alerts.ParkedForbidden)+`)
		group by a.vehicle_id`)
	if err != nil {
		return err
	}
	ids, agencies := make([]int64, len(of)), make([]int64, len(of))
	outside, forbidden := make([]*bool, len(of)), make([]*string, len(of))
	s.drifted = nil
	for i, p := range of {
		ids[i], agencies[i] = int64(p.Vehicle), int64(p.Agency)
		if p.Latitude == nil || p.Longitude == nil {
			continue
		}
		at := telematics.Position{Latitude: *p.Latitude, Longitude: *p.Longitude}
		if outside[i], forbidden[i], err = s.judge(ctx, p.Agency, at); err != nil {
			return err
		}
		if open[p.Vehicle] == "" {
			continue
		}
		s.drifted = append(s.drifted, ids[i])
		near := at.Around(driftMetres)
		for _, corner := range []telematics.Position{
			{Latitude: near.South, Longitude: near.West}, {Latitude: near.South, Longitude: near.East},
			{Latitude: near.North, Longitude: near.West}, {Latitude: near.North, Longitude: near.East},
		} {
			isOutside, area, err := s.judge(ctx, p.Agency, corner)
			if err != nil {
				return err
			}
			if *isOutside && strings.Contains(open[p.Vehicle], string(alerts.OutsideArea)) {
				outside[i] = isOutside
			}
			if strings.Contains(open[p.Vehicle], string(alerts.ParkedForbidden)) {
				forbidden[i] = cmp.Or(forbidden[i], area)
			}
		}
	}
	return s.DB.Exec(ctx, `
			update alert_inputs i set outside = n.outside, forbidden = n.forbidden
			from (
				select n.*
				from unnest($1::bigint[], $2::bigint[], $3::boolean[], $4::text[]) as n (vehicle_id, agency_id, outside, forbidden)
					join vehicles v on v.id = n.vehicle_id and v.agency_id = n.agency_id
					join alert_inputs i on i.vehicle_id = n.vehicle_id
				where (i.outside, i.forbidden) is distinct from (n.outside, n.forbidden)
				order by n.vehicle_id
				for update of i
			) n
			where i.vehicle_id = n.vehicle_id`,
		pq.Array(ids), pq.Array(agencies), pq.Array(outside), pq.Array(forbidden))
}

// judge returns whether a position is outside of the areas in which rentals of an agency end, and
// the area without parking in which it is.
func (s *Store) judge(
	ctx context.Context, agency telematics.AgencyID, at telematics.Position,
) (outside *bool, forbidden *string, err error) {
	in, ends, err := s.Areas.At(ctx, agency, at)
	isOutside := ends != ""
	for _, area := range in {
		if area.Kind == rental.AreaNoParking {
			forbidden = &area.Name
		}
		isOutside = isOutside && area.Kind != ends
	}
	return &isOutside, forbidden, err
}
