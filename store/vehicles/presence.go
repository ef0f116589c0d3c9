package vehicles

import (
	"context"
	"fmt"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Units returns the next units of vehicles, at most limit, in the order of Postgres; after is the
// last one of the page before, empty for the first page.
func (f *Fleet) Units(ctx context.Context, after telematics.Unit, limit int) ([]telematics.Unit, error) {
	var units []telematics.Unit
	err := f.db.Prepared.SelectContext(ctx, &units, `
		select serial from units where serial > $1 and vehicle_id is not null order by serial limit $2`, string(after), limit)
	return units, unavailable.Wrap("read units", err)
}

// agedBatch is the most units that one statement checks.
const agedBatch = 1000

// Aged returns the changes of connectivity since it was last announced, because time has passed or
// a report has come, and stores them as announced: each change is returned once, whichever instance
// calls. It uses Postgres's clock, so that two instances do not contradict each other. It reads the
// units that are due to be checked: an online one about once in OnlineFor, another one when it has
// sent a message.
func (f *Fleet) Aged(ctx context.Context) ([]telematics.Change, error) {
	return f.agedAt(ctx, nil)
}

// agedAt is Aged at a given time; nil: now.
func (f *Fleet) agedAt(ctx context.Context, now *time.Time) ([]telematics.Change, error) {
	var all []telematics.Change
	for {
		checked, aged, err := f.ageBatch(ctx, now)
		all = append(all, aged...)
		if err != nil || checked < agedBatch {
			return all, unavailable.Wrap("announce connectivity", err)
		}
	}
}

// ageBatch checks up to agedBatch units, and returns their number with the changes. It waits for no
// lock, so the order of the rows does not matter [LAW-7]: a locked one is being observed, or
// checked by another instance, and is checked the next time.
func (f *Fleet) ageBatch(ctx context.Context, now *time.Time) (checked int, changes []telematics.Change, err error) {
	var c telematics.Change
	var before telematics.PresenceStatus
	err = pg.Each(ctx, f.db.Pool, []any{
		pg.OrZero(&c.Vehicle), &c.Presence, &before, pg.UTC(&c.LastSeen), pg.OrZero(&c.Agency), pg.OrZero(&c.Powertrain),
	}, func() error {
		if checked++; c.Vehicle != 0 && c.Presence != before {
			changes = append(changes, c)
		}
		return nil
	}, `
		with due as materialized (
			select u.serial, u.announced as before,
				case when u.vehicle_id is null then u.announced else `+Connectivity(`coalesce($1, now())`, `$2`)+` end as connectivity
			from units u
			where u.check_at <= coalesce($1, now())
			order by u.check_at
			limit $3
			for update skip locked
		), checked as (
			update units u
			set announced = due.connectivity,
				check_at = case when u.vehicle_id is not null and due.connectivity = 'online' then `+nextCheck("u.last_seen", "$2")+` end
			from due
			where u.serial = due.serial
			returning u.vehicle_id, u.announced, due.before, u.last_seen
		)
		select c.*, v.agency_id, v.powertrain
		from checked c left join vehicles v on v.id = c.vehicle_id`,
		now, int64(telematics.OnlineFor.Seconds()), agedBatch)
	return checked, changes, err
}

// nextCheck returns the SQL of the first time at which an online unit that was last seen at
// lastSeen is not online any more.
func nextCheck(lastSeen, onlineFor string) string {
	return lastSeen + ` + ` + onlineFor + `::bigint * interval '1 second' + interval '1 millisecond'`
}

// SQL of when to check a unit u next: immediately after a report of a unit that is announced as
// offline or unknown, and at the end of OnlineFor at the latest for one that is announced as
// online.
var (
	CheckAfterReport   = `case when u.announced in ('offline', 'unknown') then now() else u.check_at end`
	CheckAfterPresence = `case when n.announced = 'online' then least(u.check_at, ` +
		nextCheck("n.last_seen", fmt.Sprint(int64(telematics.OnlineFor.Seconds()))) + `) else u.check_at end`
)

// ForgetContacts clears the presence, the sessions and the last sign of life of all units. Call it
// after the MQTT broker has lost its retained messages: it would never deliver that a unit has
// disconnected meanwhile. The actions, keys and firmware that units declared stay.
func (f *Fleet) ForgetContacts(ctx context.Context) error {
	_, err := f.db.Pool.ExecContext(ctx, `
		with locked as (
			select serial from units order by vehicle_id for update
		)
		update units
		set status = null, session = '', former_sessions = '{}', said_at = null, changed_at = null, last_seen = null, check_at = now()
		from locked where units.serial = locked.serial`)
	return unavailable.Wrap("forget contacts", err)
}
