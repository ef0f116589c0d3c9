package vehicles

import (
	"context"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// agedBatch bounds what is announced in one statement.
const agedBatch = 1000

// Aged announces the vehicles whose connectivity is not any more what was announced, because time
// has passed or a report has come, and returns them: each change once, whichever instance asks.
// Postgres's own time decides, so that two instances never take turns in contradicting each other.
func (f *Fleet) Aged(ctx context.Context) ([]telematics.Change, error) {
	return f.agedAt(ctx, nil)
}

// agedAt is Aged at an instant; nil: now.
//
// The rows are locked in the order of vehicles [LAW-7]. One that is locked is being observed,
// or announced by another instance: there is a next time.
func (f *Fleet) agedAt(ctx context.Context, now *time.Time) ([]telematics.Change, error) {
	var all []telematics.Change
	for {
		aged, err := f.ageBatch(ctx, now)
		all = append(all, aged...)
		if err != nil || len(aged) < agedBatch {
			return all, unavailable.Wrap("announce connectivity", err)
		}
	}
}

func (f *Fleet) ageBatch(ctx context.Context, now *time.Time) ([]telematics.Change, error) {
	is := connectivity(`coalesce($1, now())`, `$2`)
	var rows []struct {
		VehicleID  telematics.VehicleID      `db:"vehicle_id"`
		AgencyID   telematics.AgencyID       `db:"agency_id"`
		Powertrain telematics.Powertrain     `db:"powertrain"`
		Announced  telematics.PresenceStatus `db:"announced"`
		LastSeen   *time.Time                `db:"last_seen"`
	}
	err := f.db.Pool.SelectContext(ctx, &rows, `
		with changed as (
			select u.serial, `+is+` as connectivity
			from units u
			where u.vehicle_id is not null and u.announced <> `+is+`
			order by u.vehicle_id
			limit $3
			for update skip locked
		)
		update units u set announced = changed.connectivity
		from changed, vehicles v
		where u.serial = changed.serial and v.id = u.vehicle_id
		returning u.vehicle_id, v.agency_id, v.powertrain, u.announced, u.last_seen`,
		now, int64(telematics.OnlineFor.Seconds()), agedBatch)
	changes := make([]telematics.Change, len(rows))
	for i, row := range rows {
		changes[i] = telematics.Change{
			Vehicle: row.VehicleID, Agency: row.AgencyID, Powertrain: row.Powertrain,
			Presence: row.Announced, LastSeen: pg.FromTimestamp(row.LastSeen),
		}
	}
	return changes, err
}

// ForgetContacts removes what units reported of their connections, for when the MQTT broker has
// lost the presence that it retained: it would never deliver that a unit has left meanwhile. What
// units declared of themselves stays.
func (f *Fleet) ForgetContacts(ctx context.Context) error {
	_, err := f.db.Pool.ExecContext(ctx, `
		with locked as (
			select serial from units order by vehicle_id for update
		)
		update units set status = null, session = '', former_sessions = '{}', said_at = null, changed_at = null, last_seen = null
		from locked where units.serial = locked.serial`)
	return unavailable.Wrap("forget contacts", err)
}
