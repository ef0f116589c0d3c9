package alerts

import (
	"context"
	"slices"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/alerts"
	"motorpool/guard"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// alarm is an alarm of a unit that has not been written yet.
type alarm struct {
	vehicle telematics.VehicleID
	agency  telematics.AgencyID
	telematics.Alarm
}

// Alarmed notes alarms of units, for Run to write them as alerts. It does not block: where Postgres
// has been unavailable for long, alarms are lost, and counted.
func (s *Store) Alarmed(changes []telematics.Change) {
	for _, change := range changes {
		for _, one := range change.Alarms {
			if alerts.IsEnd(one.Kind) {
				continue
			}
			select {
			case s.alarms <- alarm{vehicle: change.Vehicle, agency: change.Agency, Alarm: one}:
			default:
				s.metrics.lost.Inc()
			}
		}
	}
}

func (s *Store) runAlarms(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			s.WriteAlarms(context.WithoutCancel(ctx))
			return nil
		case first := <-s.alarms:
			s.keepWriting(ctx, s.gather([]alarm{first}))
		}
	}
}

// WriteAlarms writes the alarms that wait. It begins none after the time that one statement may
// take, but waits for the statements of those that it has begun.
func (s *Store) WriteAlarms(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, s.DB.Timeout())
	defer cancel()
	for batch := s.gather(nil); len(batch) > 0 && ctx.Err() == nil; batch = s.gather(nil) {
		s.keepWriting(ctx, batch)
	}
}

// gather adds the alarms that wait to a batch.
func (s *Store) gather(batch []alarm) []alarm {
	for len(batch) < alarmsBatch {
		select {
		case next := <-s.alarms:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// keepWriting writes alarms until that succeeds; the end of the context allows one more attempt.
func (s *Store) keepWriting(ctx context.Context, batch []alarm) {
	lose := func(count int, err error) {
		s.metrics.lost.Add(float64(count))
		s.Logger.Warn("alarms of units lost", "count", count, "err", err)
	}
	for {
		left, err := pg.InParts(s.DB, batch, func(part []alarm) error {
			return s.writeAlarms(context.WithoutCancel(ctx), part)
		}, func(_ alarm, err error) { lose(1, err) })
		if s.unwritten.Note(ctx, s.Logger, "alarms of units not written", err); err == nil {
			return
		}
		if ctx.Err() != nil || !unavailable.Is(err) {
			lose(len(left), err)
			return
		}
		batch = left
		guard.Pause(ctx, alarmsRetry)
	}
}

// raise opens an alert for each vehicle, or adds the kind of its alarm to the one that is open.
var raise = `
	with alarm as (
		select vehicle_id, max(severity) as severity, jsonb_agg(distinct kind) as kinds,
			(array_agg(kind order by place desc))[1] as kind, (array_agg(text order by place desc))[1] as text
		from unnest($2::bigint[], $3::text[], $4::text[], $5::text[])
			with ordinality as n (vehicle_id, severity, kind, text, place)
		group by vehicle_id
	)
	insert into alerts as a (rule, severity, agency_id, vehicle_id, since, opened_at, no, facts)
	select '` + string(alerts.UnitAlarm) + `', severity, v.agency_id, vehicle_id, ` + at(1) + `, ` + at(1) + `, nextval('alerts_no'),
		jsonb_strip_nulls(jsonb_build_object('kind', kind, 'text', nullif(text, ''), 'kinds', kinds))
	from alarm join vehicles v on v.id = alarm.vehicle_id
	where v.status <> 'inactive' and not exists (select from alerts c
		where c.vehicle_id = alarm.vehicle_id and c.agency_id = v.agency_id and c.rule = '` + string(alerts.UnitAlarm) + `'
		and c.cleared_at > ` + at(1) + ` - $6 * interval '1 second' and c.facts->'kinds' @> alarm.kinds)
	order by vehicle_id
	on conflict (rule, coalesce(vehicle_id, 0), person, coalesce(booking_id, 0)) where cleared_at is null do update
	set facts = excluded.facts || jsonb_build_object('kinds',
		(select jsonb_agg(distinct kind) from jsonb_array_elements((a.facts->'kinds') || (excluded.facts->'kinds')) as kind))
	where not (a.facts->'kinds') @> (excluded.facts->'kinds') and jsonb_array_length(a.facts->'kinds') < $7
	returning a.id, case when xmax = 0 then 'opened' else 'raised' end as change`

// leave clears alarms of vehicles that have moved to another agency, to which raise would add.
var leave = `
	update alerts a set cleared_at = ` + at(1) + `
	where a.id in (
		select a.id from alerts a join vehicles v on v.id = a.vehicle_id
		where v.id = any ($2) and a.agency_id is distinct from v.agency_id and a.cleared_at is null
			and a.rule = '` + string(alerts.UnitAlarm) + `'
		order by v.id
		for update of a
	)
	returning a.id, 'cleared' as change`

func (s *Store) writeAlarms(ctx context.Context, batch []alarm) error {
	settings, err := readSettings(ctx, s.DB.Pool, "")
	if err != nil {
		return unavailable.Wrap("read the rules of alerts", err)
	}
	var vehicles []int64
	var severities, kinds, texts []string
	for _, one := range batch {
		its := settings[one.agency]
		i := slices.IndexFunc(its, func(set alerts.Setting) bool { return set.Rule == alerts.UnitAlarm })
		if i < 0 || its[i].Off || len(its[i].Levels) == 0 {
			continue
		}
		vehicles = append(vehicles, int64(one.vehicle))
		severities = append(severities, string(its[i].Levels[0].Severity))
		kinds, texts = append(kinds, one.Kind), append(texts, one.Text)
	}
	if len(vehicles) == 0 {
		return nil
	}
	var events []telematics.Event
	err = s.DB.Within(ctx, func(tx *sqlx.Tx) (err error) {
		if events, err = change(ctx, tx, leave, s.now, pq.Array(vehicles)); err != nil {
			return err
		}
		raised, err := change(
			ctx, tx, raise, s.now, pq.Array(vehicles), pq.Array(severities), pq.Array(kinds), pq.Array(texts), repeatedFor.Seconds(),
			maxKinds,
		)
		events = append(events, raised...)
		return err
	})
	s.publish(events, err)
	return unavailable.Wrap("write alarms of units", err)
}
