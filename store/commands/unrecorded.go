package commands

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

type unrecordedRow struct {
	Unit       string     `json:"unit"`
	CommandID  uuid.UUID  `json:"command_id"`
	State      string     `json:"state"`
	Reason     string     `json:"reason"`
	Detail     string     `json:"detail"`
	AnsweredAt *time.Time `json:"answered_at"`
	ReceivedAt *time.Time `json:"received_at"`
	Outcome    string     `json:"outcome"`
}

// StoreUnrecorded stores an answer whose command is not in the database and whose unit has a
// vehicle: once, with its audit log entry. It stores at most delivery.MaxUnrecorded of a unit
// within an hour, or a few more where several instances do so at the same moment.
func (s *Store) StoreUnrecorded(ctx context.Context, u delivery.Unrecorded) (delivery.UnrecordedResult, error) {
	result, err := s.unrecorded.Do(ctx, u)
	return result, unavailable.Wrap("store an answer to an unrecorded command", err)
}

func newUnrecordedRow(u delivery.Unrecorded) unrecordedRow {
	row := unrecordedRow{
		Unit: string(u.Unit), CommandID: u.Answer.Command, State: string(u.Answer.State), Reason: u.Answer.Reason, Detail: u.Answer.Detail,
		ReceivedAt: pg.Timestamp(u.At), Outcome: string(u.Answer.State.Outcome()),
	}
	if at := u.Answer.At; at.Year() >= 2020 && at.Before(u.At.Add(time.Hour)) {
		row.AnsweredAt = pg.Timestamp(at)
	}
	return row
}

func (s *Store) noteUnrecorded(ctx context.Context, answers []delivery.Unrecorded) ([]delivery.UnrecordedResult, error) {
	type answer struct {
		unit    string
		command uuid.UUID
	}
	// An answer that comes twice in a batch counts once.
	places := make(map[answer]int, len(answers))
	var rows []unrecordedRow
	for i, u := range answers {
		a := answer{string(u.Unit), u.Answer.Command}
		if _, twice := places[a]; !twice {
			places[a] = i
			rows = append(rows, newUnrecordedRow(u))
		}
	}
	var unknown []struct {
		Unit      string    `db:"unit"`
		CommandID uuid.UUID `db:"command_id"`
		VehicleID int64     `db:"vehicle_id"`
		Noted     bool      `db:"noted"`
	}
	err := s.db.Pool.SelectContext(ctx, &unknown, `
		with unknown as (
			select a.*, v.id as vehicle_id, v.agency_id, row_number() over (partition by a.unit
				order by a.received_at, a.command_id) as place
			from json_to_recordset($1) as a (unit text, command_id uuid, state text, reason text, detail text,
				answered_at timestamptz, received_at timestamptz, outcome text)
				join units u on u.serial = a.unit
				join vehicles v on v.id = u.vehicle_id
			where not command_on_record(a.command_id)
				and not exists (select from unrecorded_answers r where r.unit = a.unit and r.command_id = a.command_id)
		), noted as (
			insert into unrecorded_answers (unit, command_id, vehicle_id, agency_id, state, reason, detail, answered_at, received_at)
			select unit, command_id, vehicle_id, agency_id, state, reason, detail, answered_at, received_at
			from unknown
			where place + (
				select count(*) from unrecorded_answers r where r.unit = unknown.unit and r.noted_at > clock_timestamp() - interval '1 hour'
			) <= $2
			order by unit, command_id
			on conflict do nothing
			returning *
		), lines as (
			insert into activity (at, actor_subject, actor_role, agency_id, vehicle_id, action, parameters, outcome, code, command_id,
				latency_us, late)
			select n.noted_at, 'unit:' || n.unit, 'system', nullif(n.agency_id, 0), n.vehicle_id, '`+telematics.AnswerUnrecorded+`',
				jsonb_build_object('unit', n.unit, 'state', n.state, 'reason', n.reason, 'detail', n.detail,
					'answered_at', to_char(n.answered_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
				unknown.outcome, '', n.command_id, 0, false
			from noted n join unknown using (unit, command_id)
			order by n.received_at, n.command_id
		)
		select unknown.unit, unknown.command_id, unknown.vehicle_id, noted.unit is not null as noted
		from unknown left join noted using (unit, command_id)`,
		pg.JSON(rows), delivery.MaxUnrecorded)
	if err != nil {
		return nil, err
	}
	results := make([]delivery.UnrecordedResult, len(answers))
	for _, u := range unknown {
		place, ok := places[answer{u.Unit, u.CommandID}]
		if !ok {
			return nil, fmt.Errorf("postgres returned an answer of %s to %s that is not in the batch", u.Unit, u.CommandID)
		}
		results[place] = delivery.UnrecordedResult{Unknown: true, Noted: u.Noted, Vehicle: telematics.VehicleID(u.VehicleID)}
	}
	return results, nil
}
