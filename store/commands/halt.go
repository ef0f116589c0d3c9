package commands

import (
	"context"
	"database/sql"
	"errors"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// HaltStore stores the halts of agencies in Postgres. It is safe for concurrent use.
type HaltStore struct{ DB *pg.DB }

// Halts returns the halts in force, that of all agencies first.
func (k HaltStore) Halts(ctx context.Context) (halts telematics.Halts, err error) {
	err = k.DB.Pool.SelectContext(ctx, &halts, `select agency_id as agency, why, by, since from halts order by agency_id`)
	return halts, unavailable.Wrap("read halts", err)
}

// Halt puts a halt in force, with its audit log entry, and returns the stored halt. A halt that is
// in force already for the same reason is not changed, and adds no entry; another reason replaces
// the former one. It reports false where there is no such agency.
func (k HaltStore) Halt(ctx context.Context, h telematics.Halt, by telematics.Author) (telematics.Halt, bool, error) {
	made, done, err := k.changeHalts(ctx, `
		with changed as (
			insert into halts (agency_id, why, by)
			select $1::bigint, $2::text, $3::text where $1::bigint = 0 or exists (select from agencies where id = $1::bigint)
			on conflict (agency_id) do update set why = excluded.why,
				by = case when halts.why = excluded.why then halts.by else excluded.by end,
				since = case when halts.why = excluded.why then halts.since else excluded.since end
			returning agency_id, why, by, since, since >= statement_timestamp() as is_new
		)`, telematics.CommandsHalt, h, by)
	return made, done, unavailable.Wrap("halt commands", err)
}

// Effects implements httpapi.Halts.
func (k HaltStore) Effects(ctx context.Context, halts telematics.Halts) (effects []telematics.HaltEffect, err error) {
	if len(halts) == 0 {
		return nil, nil
	}
	err = k.DB.Lists.SelectContext(ctx, &effects, `
		with open as (
			select agency_id, count(*) filter (where state = 'accepted') as withheld,
				count(*) filter (where state <> 'accepted') as in_flight
			from commands where state in ('accepted', 'sent', 'received') group by agency_id
		), fleets as (
			select agency_id, count(*) as vehicles from vehicles group by agency_id
		)
		select coalesce((select sum(vehicles) from fleets where of in (0, agency_id)), 0) as vehicles,
			coalesce((select sum(withheld) from open where of in (0, agency_id)), 0) as withheld,
			coalesce((select sum(in_flight) from open where of in (0, agency_id)), 0) as inflight
		from unnest($1::bigint[]) with ordinality as halt (of, number) order by number`,
		pq.Array(pg.Map(halts, func(h telematics.Halt) telematics.AgencyID { return h.Agency })))
	return effects, unavailable.Wrap("count what halts stop", err)
}

// Resume implements httpapi.Halts, with an audit log entry that has why, which may be empty.
func (k HaltStore) Resume(ctx context.Context, agency telematics.AgencyID, why string, by telematics.Author) (bool, error) {
	_, done, err := k.changeHalts(ctx, `
		with changed as (delete from halts where agency_id = $1::bigint returning agency_id, why, by, since, true as is_new)`,
		telematics.CommandsResume, telematics.Halt{Agency: agency, Why: why}, by)
	return done, unavailable.Wrap("resume commands", err)
}

// changeHalts runs a change of the halt of $1, the agency, and adds its audit log entry, in one
// transaction.
func (k HaltStore) changeHalts(
	ctx context.Context, change, activity string, h telematics.Halt, by telematics.Author,
) (halt telematics.Halt, done bool, err error) {
	statement := change + `, recorded as (
			insert into activity (at, actor_subject, actor_role, actor_agency_id, agency_id, action, outcome, code, request_id,
				latency_us, late, note)
			select clock_timestamp(), $3::text, $5::text, nullif($6::bigint, 0), nullif(agency_id, 0), $4::text, '', '', $7::uuid, 0,
				false, $2::text
			from changed where is_new
		)
		select agency_id as agency, why, by, since from changed`
	err = k.DB.Within(ctx, func(tx *sqlx.Tx) error {
		return tx.GetContext(ctx, &halt, statement, h.Agency, h.Why, by.Subject, activity, by.Role, by.Agency, requestOf(by))
	})
	if errors.Is(err, sql.ErrNoRows) {
		return telematics.Halt{}, false, nil
	}
	return halt, err == nil, err
}

// requestOf returns nil where there was no request.
func requestOf(by telematics.Author) any {
	if by.RequestID == uuid.Nil {
		return nil
	}
	return by.RequestID
}
