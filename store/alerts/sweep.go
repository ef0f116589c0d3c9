package alerts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/alerts"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// Sweep evaluates all rules: it opens, raises and clears alerts, and publishes that. A rule that
// fails stops no other; the error names each. Sweeps of several instances change nothing twice.
func (s *Store) Sweep(ctx context.Context) error {
	s.sweeping.Lock()
	defer s.sweeping.Unlock()
	receiving := s.receivingSince()
	errs := []error{s.renew(ctx)}
	settings, err := readSettings(ctx, s.DB.Pool, "")
	if err != nil {
		return errors.Join(append(errs, unavailable.Wrap("read the rules of alerts", err))...)
	}
	settings[0] = alerts.Defaults() // of what is of no agency
	full := time.Since(s.swept) >= seldomEvery || s.now != nil
	for _, c := range conditions {
		if c.seldom && !full {
			continue
		}
		if err := s.sweep(ctx, c, settings, receiving, full); err != nil {
			s.metrics.failures.WithLabelValues(string(c.rule)).Inc()
			errs = append(errs, unavailable.Wrap("evaluate "+string(c.rule), err))
		}
	}
	if full {
		s.swept = time.Now()
	}
	return errors.Join(errs...)
}

// step runs one transaction of a sweep, unless another instance runs one.
func (s *Store) step(ctx context.Context, run func(*sqlx.Tx) error) error {
	return s.DB.Within(ctx, func(tx *sqlx.Tx) error {
		var alone bool
		if err := tx.GetContext(ctx, &alone, `select pg_try_advisory_xact_lock(hashtextextended('alerts', 0))`); err != nil || !alone {
			return err
		}
		return run(tx)
	})
}

// parametersOf returns the parameters of a condition.
func parametersOf(rule alerts.Rule, settings map[telematics.AgencyID][]alerts.Setting, receiving, now time.Time) []any {
	var agencies []int64
	var holds []float64
	var limits [3][]*float64 // by severity
	var mildest, worst []string
	var outermost *float64
	_, below := rule.Unit()
	for _, agency := range slices.Sorted(maps.Keys(settings)) {
		i := slices.IndexFunc(settings[agency], func(one alerts.Setting) bool { return one.Rule == rule })
		set := settings[agency][i]
		if set.Off || len(set.Levels) == 0 {
			continue
		}
		agencies, holds = append(agencies, int64(agency)), append(holds, set.For.Seconds())
		mildest, worst = append(mildest, string(set.Levels[0].Severity)), append(worst, string(set.Levels[len(set.Levels)-1].Severity))
		for rank, severity := range alerts.Severities {
			var limit *float64
			if j := slices.IndexFunc(set.Levels, func(l alerts.Level) bool { return l.Severity == severity }); j >= 0 {
				limit = set.Levels[j].Limit
			}
			limits[rank] = append(limits[rank], limit)
			if limit != nil && (outermost == nil || (*limit > *outermost) == below) {
				outermost = limit
			}
		}
	}
	return []any{
		now, pq.Array(agencies), pq.Array(holds), pq.Array(limits[0]), pq.Array(limits[1]), pq.Array(limits[2]),
		pq.Array(mildest), pq.Array(worst), outermost, int64(telematics.OnlineFor.Seconds()), pg.Timestamp(receiving), string(rule),
	}
}

const (
	rank = `array_position(array['info', 'warning', 'critical'], %s)`
	same = `coalesce(h.vehicle_id, 0) = coalesce(o.vehicle_id, 0) and h.person = o.person
		and coalesce(h.agency_id, 0) = coalesce(o.agency_id, 0) and coalesce(h.booking_id, 0) = coalesce(o.booking_id, 0)`
)

// statement returns the SQL that evaluates a rule, and returns what has changed. It passes over
// alerts that another transaction has locked, as an acknowledgement does for a moment.
//
// A severity that is higher than that of the alert has to hold for the rule's time, too. What moves
// to another agency has another alert: the former one must not see what becomes of it. So has what
// is about another booking: that a person has seen the one says nothing of the other.
//
// A time that is yet to come is of a clock that was ahead: the condition has begun now.
func (c condition) statement() string {
	higher := fmt.Sprintf(rank+` > `+rank, "h.severity", "o.severity")
	facts := `case when n.opens or n.rises`
	also := ``
	if c.live {
		facts = `case when n.holds`
		also = ` or n.holds and n.facts <> n.known`
	}
	return `
	with given as (
		select ` + outermost + `, ` + onlineFor + `, ` + receiving + `, ` + troubled + `
	), ` + settings + `, holding as materialized (
		select ` + holding + ` from (` + c.sql + `) found
	), open as materialized (
		select * from alerts where rule = $12 and cleared_at is null
	), judged as materialized (
		select o.id, o.severity, o.since, o.opened_at, o.worse_at, o.facts as known, h.holds, h.severity as is_now, h.facts,
			h.hold is null or o.opened_at is null and not h.holds as ended,
			coalesce(o.opened_at is null and h.holds and o.since + h.hold * interval '1 second' <= ` + instant + `, false) as opens,
			coalesce(h.holds and ` + higher + ` and least(o.worse_at, ` + instant + `) + h.hold * interval '1 second' <= ` + instant + `,
				false) as rises,
			case when h.holds is null then o.worse_at when h.holds and ` + higher + ` then least(o.worse_at, ` + instant + `)
				end as worse_since
		from open o left join holding h on ` + same + `
	), compared as (
		select *, case when rises then is_now
				when opened_at is null and holds and ` + fmt.Sprintf(rank+` < `+rank, "is_now", "severity") + ` then is_now
				else severity end as severity_next,
			case when not rises then worse_since end as worse_next
		from judged
	), next as materialized (
		select n.* from compared n join alerts a on a.id = n.id
		where n.ended or n.opens or n.severity_next <> n.severity or n.worse_next is distinct from n.worse_at
			or n.since > ` + instant + also + `
		order by n.id
		for update of a skip locked
	), removed as (
		delete from alerts a using next n where a.id = n.id and n.ended and n.opened_at is null
	), changed as (
		update alerts a set severity = n.severity_next, worse_at = n.worse_next, since = least(a.since, ` + instant + `),
			opened_at = case when n.opens then ` + instant + ` else a.opened_at end,
			no = case when n.opens then nextval('alerts_no') else a.no end,
			cleared_at = case when n.ended then ` + instant + ` end,
			facts = ` + facts + ` then n.facts else a.facts end
		from next n
		where a.id = n.id and not (n.ended and n.opened_at is null)
		returning a.id, case when n.ended then 'cleared' when n.opens then 'opened'
			when n.rises and a.no is not null then 'raised' end as change
	), added as (
		insert into alerts (rule, severity, agency_id, vehicle_id, person, booking_id, command_id, facts, since, opened_at, no)
		select $12, h.severity, h.agency_id, h.vehicle_id, h.person, h.booking_id, h.command_id, h.facts, h.begun,
			case when h.due then ` + instant + ` end, case when h.due then nextval('alerts_no') end
		from (
			select *, coalesce(since, ` + instant + `) as begun,
				coalesce(since, ` + instant + `) + hold * interval '1 second' <= ` + instant + ` as due
			from holding where holds
		) h
		where not exists (select from open o where ` + same + `)
		order by h.vehicle_id, h.person
		on conflict (rule, coalesce(vehicle_id, 0), person, coalesce(booking_id, 0)) where cleared_at is null do nothing
		returning id, case when opened_at is not null then 'opened' end as change
	)
	select id, change from (select * from changed union all select * from added) all_of_them where change is not null`
}

// sweep evaluates one rule, and publishes what has changed.
func (s *Store) sweep(
	ctx context.Context, c condition, settings map[telematics.AgencyID][]alerts.Setting, receiving time.Time, full bool,
) error {
	var events []telematics.Event
	err := s.step(ctx, func(tx *sqlx.Tx) (err error) {
		var now time.Time
		if err := tx.GetContext(ctx, &now, `select `+at(1), s.now); err != nil {
			return err
		}
		since := now.Add(-troublesWithin)
		if full {
			since = now.Add(-telematics.UnitHealthFor)
		}
		parameters := append(parametersOf(c.rule, settings, receiving, now), since)
		events, err = change(ctx, tx, c.statement(), parameters...)
		return err
	})
	s.publish(events, err)
	return err
}

// publish publishes the events of a transaction that has been committed; of one that may have been,
// because Postgres or the connection ended before it replied, that some may be missing.
func (s *Store) publish(events []telematics.Event, err error) {
	switch refusal := pq.As(err); {
	case err == nil || len(events) == 0:
	case refusal != nil && refusal.Code.Class() != "08" && !strings.HasPrefix(string(refusal.Code), "57P"):
		events = nil
	default:
		events = []telematics.Event{{Kind: telematics.ResetEvent, At: time.Now().UTC()}}
	}
	for _, e := range events {
		s.Publish(e)
	}
}

// change runs a statement that returns which alerts it has changed, and how; it returns the events
// of that.
func change(ctx context.Context, tx *sqlx.Tx, statement string, parameters ...any) ([]telematics.Event, error) {
	changes, err := pg.Pairs[uuid.UUID, alerts.Change](ctx, tx, statement, parameters...)
	if err != nil || len(changes) == 0 {
		return nil, err
	}
	changed, err := read(ctx, tx, ` and a.id = any ($1::uuid[]) order by a.no`, pq.Array(slices.Collect(maps.Keys(changes))))
	return pg.Map(changed, func(a alerts.Alert) telematics.Event { return a.Event(changes[a.ID], time.Now()) }), err
}
