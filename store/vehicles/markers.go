package vehicles

import (
	"context"
	"database/sql"
	"strconv"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// markerStatement returns the data of vehicles for lists and maps, by id. Values of a snapshot are
// compared as JSON, so that one which is no number is outside of each box.
var markerStatement = `
	select v.id, v.agency_id, v.plate_number, v.brand, v.model, coalesce(u.serial, ''), v.powertrain,
		v.status, ` + Connectivity(`$2`, `$3`) + `, u.last_seen,
		s.fields->'location.latitude'->>'v', s.fields->'location.longitude'->>'v', s.fields->'location.timestamp'->>'v',
		locked.is->>'v', locked.is->>'at', energy.is->>'v', energy.is->>'at',
		plug.is->>'v', plug.is->>'at'
	from vehicles v left join units u on u.vehicle_id = v.id left join snapshots s on s.vehicle_id = v.id
		cross join lateral (select s.fields->'telemetry.is_locked' as is) locked
		cross join lateral (select s.fields->case v.powertrain
			when 'electric' then 'telemetry.battery_level_percent' else 'telemetry.fuel_level_percent' end as is) energy
		cross join lateral (select s.fields->'telemetry.charging_status' as is) plug
	where ($1::bigint = 0 or v.agency_id = $1)
		and (not $4::boolean
			or s.fields->'location.latitude'->'v' between to_jsonb($5::float8) and to_jsonb($6::float8)
			and case when $7::float8 <= $8::float8
				then s.fields->'location.longitude'->'v' between to_jsonb($7::float8) and to_jsonb($8::float8)
				else s.fields->'location.longitude'->'v' between to_jsonb($7::float8) and '180'
					or s.fields->'location.longitude'->'v' between '-180' and to_jsonb($8::float8)
			end)
	order by v.id`

// Markers implements httpapi.Fleet. It reads Postgres alone, which may not have the latest reported
// state yet, and holds one vehicle at a time in memory.
func (f *Fleet) Markers(ctx context.Context, q telematics.MarkerQuery, each func(telematics.Marker) error) error {
	box, bounded := pg.Deref(q.Box), q.Box != nil
	rows, err := f.db.Lists.QueryContext(ctx, markerStatement, q.Agency, time.Now(), int64(telematics.OnlineFor.Seconds()),
		bounded, box.South, box.North, box.West, box.East)
	if err != nil {
		return unavailable.Wrap("read markers", err)
	}
	defer rows.Close()
	for rows.Next() {
		var m telematics.Marker
		var seen sql.NullTime
		var latitude, longitude, located, locked, lockedAt, energy, energyAt, plug, plugAt sql.NullString
		if err := rows.Scan(&m.ID, &m.Agency, &m.Plate, &m.Brand, &m.Model, &m.Unit, &m.Powertrain, &m.Status, &m.Connectivity,
			&seen, &latitude, &longitude, &located, &locked, &lockedAt, &energy, &energyAt, &plug, &plugAt); err != nil {
			return unavailable.Wrap("read markers", err)
		}
		m.LastSeen = seen.Time
		north, east := parseNumber(latitude), parseNumber(longitude)
		if north != nil && east != nil {
			m.Position = &telematics.Position{Latitude: *north, Longitude: *east}
			m.LocatedAt, _ = time.Parse(time.RFC3339, located.String) // zero where it is not known
		}
		if is, err := strconv.ParseBool(locked.String); err == nil {
			m.Locked, m.LockedAt = &is, parseMillis(lockedAt)
		}
		if m.Energy = parseNumber(energy); m.Energy != nil {
			m.EnergyAt = parseMillis(energyAt)
		}
		if plug.Valid && m.Powertrain.PlugsIn() {
			m.Charging, m.ChargingAt = new(plug.String == "charging"), parseMillis(plugAt)
		}
		if err := each(m); err != nil {
			return err
		}
	}
	return unavailable.Wrap("read markers", rows.Err())
}

// parseMillis returns zero for a text that is no number of milliseconds since 1970.
func parseMillis(text sql.NullString) time.Time {
	ms, err := strconv.ParseInt(text.String, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// parseNumber returns nil for a text that is no number.
func parseNumber(text sql.NullString) *float64 {
	n, err := strconv.ParseFloat(text.String, 64)
	if err != nil {
		return nil
	}
	return &n
}
