package vehicles

import (
	"context"
	"slices"
	"strings"
	"time"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// table has an older name for unknown units, from the migration that created it.
const table = `strangers`

type unknownUnitRow struct {
	Serial    string    `json:"serial"`
	FirstSeen time.Time `json:"first_seen"`
	LastSeen  time.Time `json:"last_seen"`
	Messages  int64     `json:"messages"`
}

// StoreUnknownUnits inserts units without a vehicle, or adds to their rows. Of more than
// telematics.MaxUnknownUnits it removes those that were silent for longest.
func (f *Fleet) StoreUnknownUnits(ctx context.Context, heard []telematics.UnknownUnit) error {
	rows := pg.Map(heard, func(u telematics.UnknownUnit) unknownUnitRow {
		return unknownUnitRow{Serial: string(u.Unit), FirstSeen: u.FirstSeen.UTC(), LastSeen: u.LastSeen.UTC(), Messages: u.Messages}
	})
	// In one order everywhere: else two instances lock each other's rows [LAW-7].
	slices.SortFunc(rows, func(a, b unknownUnitRow) int { return strings.Compare(a.Serial, b.Serial) })
	var added int
	err := f.db.Pool.GetContext(ctx, &added, `
		with noted as (
			insert into `+table+` as s (serial, first_seen, last_seen, messages)
			select * from json_to_recordset($1) as n (serial text, first_seen timestamptz, last_seen timestamptz, messages bigint)
			on conflict (serial) do update
			set first_seen = least(s.first_seen, excluded.first_seen), last_seen = greatest(s.last_seen, excluded.last_seen),
				messages = s.messages + excluded.messages
			returning xmax = 0 as added
		)
		select count(*) from noted where added`,
		pg.JSON(rows))
	if err == nil && added > 0 {
		_, err = f.db.Pool.ExecContext(ctx, `
			delete from `+table+` where serial in (
				select serial from `+table+` order by last_seen desc, no desc offset $1 for update skip locked)`,
			telematics.MaxUnknownUnits)
	}
	return unavailable.Wrap("note units without a vehicle", err)
}

// UnknownUnits implements httpapi.Units.
func (f *Fleet) UnknownUnits(ctx context.Context, page telematics.Page) (units []telematics.UnknownUnit, err error) {
	err = f.db.Lists.SelectContext(ctx, &units, `
		select no, serial as unit, first_seen as firstseen, last_seen as lastseen, messages
		from `+table+` s
		where ($1::bigint = 0 or no < $1) and not exists (select from units u where u.serial = s.serial and u.vehicle_id is not null)
		order by no desc
		limit nullif($2::bigint, 0)`,
		page.Before, page.Limit)
	return units, unavailable.Wrap("read units without a vehicle", err)
}

// ForgetUnknownUnits removes units without a vehicle that are silent for
// telematics.UnknownUnitsKeptFor, up to limit of them, and reports whether there may be others.
func ForgetUnknownUnits(ctx context.Context, db *pg.DB, limit int) (more bool, err error) {
	return db.Forget(ctx, "forget units without a vehicle", `
		delete from `+table+` where serial in (
			select serial from `+table+` where last_seen <= now() - `+pg.Interval(telematics.UnknownUnitsKeptFor)+`
			order by last_seen limit $1 for update skip locked)`, limit)
}
