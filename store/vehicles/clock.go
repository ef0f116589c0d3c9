package vehicles

import (
	"context"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// CorrectTimes corrects contacts of units that are dated farther ahead than they can be, because a
// clock had leapt ahead: the unit's presence would count as overtaken, and the unit as online,
// until that time. The next presence replaces such a one. It returns the number of units; none
// until Postgres's clock has been steady for some hours, since by one that has gone back much seems
// to be far ahead. It waits for no lock.
func CorrectTimes(ctx context.Context, db *pg.DB) (corrected int, err error) {
	err = db.Pool.GetContext(ctx, &corrected, `
		with ahead as (
			select serial, now() + `+pg.Interval(telematics.MaxAhead)+` as latest from units
			where `+pg.Steady+` and greatest(said_at, changed_at, last_seen) > now() + `+pg.Interval(telematics.MaxAhead)+`
			for update skip locked
		), corrected as (
			update units u set said_at = case when said_at <= latest then said_at end,
			changed_at = case when changed_at > latest then now() else changed_at end,
				last_seen = case when last_seen > latest then now() else last_seen end, check_at = now()
			from ahead where u.serial = ahead.serial
			returning u.serial
		)
		select count(*) from corrected`)
	return corrected, unavailable.Wrap("correct contacts of units", err)
}
