package vehicles

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
)

type vehicleFileRow struct {
	ID           telematics.VehicleID     `json:"id"`
	AgencyID     telematics.AgencyID      `json:"agency_id"`
	Status       telematics.VehicleStatus `json:"status"`
	Powertrain   telematics.Powertrain    `json:"powertrain"`
	PlateNumber  string                   `json:"plate_number"`
	Brand        string                   `json:"brand"`
	Model        string                   `json:"model"`
	Year         int                      `json:"year"`
	Color        string                   `json:"color"`
	Category     string                   `json:"category"`
	Image        string                   `json:"image"`
	Features     []string                 `json:"features"`
	Capabilities []telematics.Action      `json:"capabilities"`
	HourlyRate   *rental.Minor            `json:"hourly_rate"` // null: not for rent
	Deposit      rental.Minor             `json:"deposit"`
	Reason       string                   `json:"maintenance_reason"`
	Until        *time.Time               `json:"maintenance_until"`
	By           string                   `json:"maintenance_by"`
}

// statusByBookings is the SQL of the status that follows from the bookings of a vehicle f; null: it
// has none.
const statusByBookings = `
			select case b.state when 'active' then 'in_use' else 'booked' end
			from bookings b
			where b.vehicle_id = f.id and b.state in ('upcoming', 'active')
			order by b.state = 'active' desc
			limit 1`

// vehicleColumns are those that a fleet file sets, without the key.
var vehicleColumns = pg.Columns{
	"agency_id", "status", "powertrain", "plate_number", "brand", "model", "year", "color", "category", "image", "features",
	"capabilities", "hourly_rate", "deposit", "maintenance_reason", "maintenance_until",
}

// fileVehicles is the SQL of the vehicles of a file, with the status that follows from bookings.
const fileVehicles = `
	select id, agency_id,
		case when own in ('maintenance', 'inactive') then own else coalesce((` + statusByBookings + `), own) end as status,
		powertrain, plate_number, brand, model, year, color, category, image,
		coalesce(features, '{}') as features, coalesce(capabilities, '{}') as capabilities, hourly_rate, deposit,
		case when own = 'maintenance' then maintenance_reason else '' end as maintenance_reason,
		case when own = 'maintenance' then maintenance_until end as maintenance_until,
		case when own = 'maintenance' then maintenance_by else '' end as maintenance_by,
		case when own = 'maintenance' then now() end as maintenance_since
	from json_populate_recordset(null::vehicles, $1) f
		cross join lateral (
			select coalesce(nullif(f.status, ''), (select v.status from vehicles v where v.id = f.id), 'available') as own
		) said`

// importVehicles locks the existing vehicles that differ from the file, so that no booking
// changes the status of one between the read of its bookings and the commit.
func importVehicles(
	ctx context.Context, tx *sqlx.Tx, part []telematics.Vehicle, rates map[telematics.VehicleID]rental.Rate, by string,
) (int, error) {
	rows := make([]vehicleFileRow, len(part))
	for i, v := range part {
		rate, rented := rates[v.ID]
		rows[i] = vehicleFileRow{
			ID: v.ID, AgencyID: v.AgencyID, Status: v.Status, Powertrain: v.Powertrain, PlateNumber: v.Plate,
			Brand: v.Brand, Model: v.Model, Year: v.Year, Color: v.Color, Category: v.Category, Image: v.Image,
			Features: v.Features, Capabilities: v.Actions, Deposit: rate.Deposit,
			Reason: v.Maintenance.Reason, Until: pg.Nullable(v.Maintenance.Until), By: by,
		}
		if rented {
			rows[i].HourlyRate = &rate.Hourly
		}
	}
	var changed []telematics.VehicleID
	err := tx.SelectContext(ctx, &changed, `
		select f.id from (`+fileVehicles+`) f left join vehicles v on v.id = f.id
		where v.id is null or (`+vehicleColumns.Of("v")+`) is distinct from (`+vehicleColumns.Of("f")+`)`,
		pg.JSON(rows))
	if err != nil || len(changed) == 0 {
		return 0, err
	}
	rows = slices.DeleteFunc(rows, func(row vehicleFileRow) bool { return !slices.Contains(changed, row.ID) })
	var withdrawn []telematics.VehicleID // zero: one is in service
	if err := tx.SelectContext(ctx, &withdrawn, `
		select case when status in ('maintenance', 'inactive') then id else 0 end from vehicles where id = any ($1)
		order by id for no key update`, pq.Array(changed)); err != nil {
		return 0, err
	}
	left, err := bookingsLeftBehind(ctx, tx, part)
	if err == nil && len(left) > 0 {
		err = rental.Forbids(rental.BookingStateConflict, fmt.Sprintf("Vehicle %d %v.", left[0].Vehicle, left[0]))
	}
	if err != nil {
		return 0, err
	}
	n, err := upsert(ctx, tx, `
		insert into vehicles (id, `+vehicleColumns.String()+`, maintenance_by, maintenance_since)
		select id, `+vehicleColumns.String()+`, maintenance_by, maintenance_since from (`+fileVehicles+`) f
		order by id
		on conflict (id) do update set (`+vehicleColumns.String()+`) = (`+vehicleColumns.Of("excluded")+`),
			maintenance_by = case when vehicles.status = excluded.status then vehicles.maintenance_by else excluded.maintenance_by end,
			maintenance_since = case when vehicles.status = excluded.status then vehicles.maintenance_since
				else excluded.maintenance_since end`,
		rows)
	if err == nil {
		err = NoteReturn(ctx, tx, withdrawn...)
	}
	return n, err
}

// NoteReturn notes that those of some withdrawn vehicles that are in service by now have just
// returned: then maintenance_since is when they did. Call it after the change of their status.
func NoteReturn(ctx context.Context, tx *sqlx.Tx, ids ...telematics.VehicleID) error {
	_, err := tx.ExecContext(ctx, `
		update vehicles set maintenance_since = now() where id = any ($1) and status not in ('maintenance', 'inactive')`, pq.Array(ids))
	return err
}

// leftBehind is a vehicle that comes to another agency, and its bookings, which would stay with the
// former one: their clients could neither begin nor end them, and they would keep the vehicle.
type leftBehind struct {
	Vehicle  telematics.VehicleID `db:"id"`
	Active   int                  `db:"active"`
	Upcoming int                  `db:"upcoming"`
}

func (l leftBehind) String() string {
	return fmt.Sprintf("has bookings (%d active, %d upcoming) that would stay with its former agency: "+
		"end them, cancel them, or move them to another vehicle first", l.Active, l.Upcoming)
}

// bookingsLeftBehind returns those of the vehicles whose bookings would be left behind. Changes of
// bookings lock their vehicle: where the caller has, there are no others.
func bookingsLeftBehind(ctx context.Context, db pg.Querier, part []telematics.Vehicle) (list []leftBehind, err error) {
	ids, agencies := make([]int64, len(part)), make([]int64, len(part))
	for i, v := range part {
		ids[i], agencies[i] = int64(v.ID), int64(v.AgencyID)
	}
	err = db.SelectContext(ctx, &list, `
		select v.id, count(*) filter (where b.state = 'active') as active, count(*) filter (where b.state = 'upcoming') as upcoming
		from unnest($1::bigint[], $2::bigint[]) as f (id, agency_id)
			join vehicles v on v.id = f.id and v.agency_id <> f.agency_id
			join bookings b on b.vehicle_id = v.id and b.agency_id <> f.agency_id and b.state in ('upcoming', 'active')
		group by v.id
		order by v.id`, pq.Array(ids), pq.Array(agencies))
	return list, err
}

type unitFileRow struct {
	Serial    *telematics.Unit     `json:"serial"` // null: none is built in
	VehicleID telematics.VehicleID `json:"vehicle_id"`
	Protocol  telematics.Protocol  `json:"protocol"`
	// Never null.
	Installation telematics.Installation `json:"installation"`
}

// importUnits returns the units that it has changed, some of them twice. It removes units that
// move from their vehicles before it adds any, so that two can be swapped. It locks several units
// in no order: no other transaction waits for one while it holds another.
//
// A unit that moves keeps what it has said of itself, its actions, keys and firmware: it says so
// only when it connects, mostly before its move is recorded.
//
// What was reported of a vehicle that gets another unit is forgotten, but for its position: where
// the new one does not report a door, nothing else would ever close it. That a unit which was not
// on record comes to a rented vehicle is noted as a move: its odometer may be another.
func importUnits(ctx context.Context, tx *sqlx.Tx, part []telematics.Vehicle) (changed []telematics.Unit, err error) {
	rows := make([]unitFileRow, len(part))
	for i, v := range part {
		rows[i] = unitFileRow{
			Serial: pg.Nullable(v.Unit), VehicleID: v.ID,
			Protocol: cmp.Or(v.Protocol, telematics.DefaultProtocol), Installation: v.Installation,
		}
		if v.Installation == nil {
			rows[i].Installation = telematics.Installation{}
		}
	}
	records := pg.JSON(rows)
	const (
		file = `with f as materialized (
				select * from json_to_recordset($1) as f (serial text, vehicle_id bigint, protocol text, installation jsonb)
			), leaving as (
				select u.serial from f join units u on u.vehicle_id = f.vehicle_id where u.serial is distinct from f.serial
				union
				select u.serial from f join units u on u.serial = f.serial where (u.vehicle_id, u.protocol) <> (f.vehicle_id, f.protocol)
			), coming as (
				select f.* from f left join units u on u.serial = f.serial
				where f.serial is not null and (u.vehicle_id, u.protocol, u.installation) is distinct
				from (f.vehicle_id, f.protocol, f.installation)
			)`
		remove = file + `
			update units
			set vehicle_id = null, status = null, session = '', former_sessions = '{}', said_at = null, changed_at = null, last_seen = null,
				gap_ms = null
			where serial in (select serial from leaving)
			returning serial`
		forget = file + `
			update snapshots s set updated_at = clock_timestamp(),
				fields = (select coalesce(jsonb_object_agg(key, value), '{}') from jsonb_each(s.fields) where key like 'location.%')
			from coming c
			where s.vehicle_id = c.vehicle_id and not exists (select from units u where u.serial = c.serial and u.vehicle_id = c.vehicle_id)
			returning c.serial`
		add = file + `
			insert into units (serial, vehicle_id, protocol, installation, moved_at)
			select serial, vehicle_id, protocol, installation, case when exists (
				select from bookings b where b.vehicle_id = coming.vehicle_id and b.state = 'active') then clock_timestamp() end
			from coming order by vehicle_id
			on conflict (serial) do update
			set vehicle_id = excluded.vehicle_id, protocol = excluded.protocol, installation = excluded.installation,
				actions = case when units.protocol = excluded.protocol then units.actions end,
				keys = case when units.protocol = excluded.protocol then units.keys end,
				firmware = case when units.protocol = excluded.protocol then units.firmware else '' end
			returning serial`
	)
	for _, query := range []string{remove, forget, add} {
		var serials []telematics.Unit
		if err := tx.SelectContext(ctx, &serials, query, records); err != nil {
			return nil, err
		}
		changed = append(changed, serials...)
	}
	return changed, nil
}
