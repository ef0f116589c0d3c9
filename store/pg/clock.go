package pg

import (
	"context"
	"errors"
	"time"

	"motorpool/store/unavailable"
)

// ErrClockLeapt means that nothing may be removed by Postgres's clock: it has leapt within the last
// six hours, or no instance has noted the time for an hour.
var ErrClockLeapt = errors.New(
	"the clock of Postgres has leapt, or no instance was running, within the last six hours: by such a clock nothing is removed",
)

// Steady is the SQL of whether Postgres's clock has passed without a leap, evaluated once a
// statement: what is removed by a time must be removed by such a clock alone.
const Steady = `(select clock_is_steady())`

// Time returns the time of Postgres's clock [LAW-11].
func (p *DB) Time(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := p.Health.GetContext(ctx, &now, `select clock_timestamp()`)
	return now, unavailable.Wrap("read postgres's clock", err)
}

// ObserveClock notes Postgres's clock, and returns by how much it has leapt since an instance noted
// it last: zero unless that is more than an hour ahead, or a minute back.
func (p *DB) ObserveClock(ctx context.Context) (leap time.Duration, err error) {
	var seconds float64
	err = p.Health.GetContext(ctx, &seconds, `select extract(epoch from observe_clock())`)
	return time.Duration(seconds * float64(time.Second)), unavailable.Wrap("note postgres's clock", err)
}

// checkSteady returns ErrClockLeapt where nothing may be removed by Postgres's clock.
func (p *DB) checkSteady(ctx context.Context) error {
	var steady bool
	err := p.Health.GetContext(ctx, &steady, `select `+Steady)
	if err == nil && !steady {
		return ErrClockLeapt
	}
	return unavailable.Wrap("ask whether postgres's clock has leapt", err)
}

// Ahead returns for how long the partitions of a table by time last from now, by Postgres's clock.
// Names of partitions end with the month or the day.
func (p *DB) Ahead(ctx context.Context, table string) (time.Duration, error) {
	var seconds float64
	err := p.Pool.GetContext(ctx, &seconds, `
		select coalesce(extract(epoch from max(case
			when c.relname ~ '_\d{4}_\d{2}_\d{2}$' then to_date(right(c.relname, 10), 'YYYY_MM_DD') + interval '1 day'
			when c.relname ~ '_\d{4}_\d{2}$' then to_date(right(c.relname, 7),
			'YYYY_MM') + interval '1 month' end) - now() at time zone 'UTC'), 0)
		from pg_inherits i join pg_class c on c.oid = i.inhrelid where i.inhparent = $1::text::regclass`, table)
	return time.Duration(seconds * float64(time.Second)), unavailable.Wrap("read the partitions of "+table, err)
}
