package commands

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// OpenBulk implements broker.Bulks.
func (s *Store) OpenBulk(ctx context.Context, b telematics.Bulk) (keyTaken bool, err error) {
	row := struct {
		ID           uuid.UUID           `json:"id"`
		Action       string              `json:"action"`
		Parameters   *activity.Attention `json:"parameters"`
		ActorSubject string              `json:"actor_subject"`
		ActorRole    string              `json:"actor_role"`
		ActorAgency  *int64              `json:"actor_agency_id"`
		RequestID    *uuid.UUID          `json:"request_id"`
		RequestedAt  *time.Time          `json:"requested_at"`
		*keyRow
	}{
		ID: b.ID, Action: string(b.Action), Parameters: activity.EncodeAttention(b.Attention),
		ActorSubject: b.Actor.Subject, ActorRole: string(b.Actor.Role), ActorAgency: pg.Nullable(int64(b.Actor.Agency)),
		RequestID: pg.Nullable(b.RequestID), RequestedAt: pg.Timestamp(b.Requested), keyRow: newKeyRow(b.Key),
	}
	err = s.db.Exec(ctx, `
		with bulk as (
			select * from json_to_record($1) as bulk (
				id uuid, action text, parameters jsonb, actor_subject text, actor_role text, actor_agency_id bigint,
				request_id uuid, requested_at timestamptz,
				key_agency_id bigint, key_subject text, key text, key_fingerprint text)
		), opened as (
			insert into bulks (id, action, parameters, vehicle_ids, actor_subject, actor_role, actor_agency_id, request_id, requested_at)
			select id, action, parameters, $2, actor_subject, actor_role, actor_agency_id, request_id, requested_at from bulk
			on conflict (id) do nothing -- a driver retries it where it lost the reply
			returning id
		)
		insert into idempotency_keys (agency_id, subject, key, fingerprint, bulk_id)
		select key_agency_id, key_subject, key, decode(key_fingerprint, 'hex'), id
		from bulk join opened using (id)
		where key is not null`,
		pg.JSON(row), pq.Array(b.Vehicles))
	if isKeyTaken(err) {
		return true, nil
	}
	return false, unavailable.Wrap("store a bulk", err)
}

// RefuseBulk stores for which vehicles of a bulk there is no command, and why. It may be repeated.
func (s *Store) RefuseBulk(ctx context.Context, id telematics.BulkID, items []telematics.BulkItem) error {
	type row struct {
		VehicleID int64               `json:"vehicle_id"`
		Error     *telematics.Failure `json:"error"`
	}
	var rows []row
	for _, item := range items {
		if e := item.Refusal; e != nil {
			rows = append(rows, row{VehicleID: int64(item.Vehicle), Error: telematics.NewFailure(e)})
		}
	}
	if len(rows) == 0 {
		return nil
	}
	err := s.db.Exec(ctx, `
		insert into bulk_refusals (bulk_id, vehicle_id, error)
		select $1, vehicle_id, error from json_to_recordset($2) as refusal (vehicle_id bigint, error jsonb)
		on conflict do nothing`,
		id, pg.JSON(rows))
	return unavailable.Wrap("note the refusals of a bulk", err)
}

// Bulk implements broker.Bulks and httpapi.Bulks.
func (s *Store) Bulk(ctx context.Context, id telematics.BulkID) (telematics.Bulk, error) {
	b, found, err := s.bulk(ctx, id)
	switch {
	case err != nil:
		return telematics.Bulk{}, unavailable.Wrap("read bulk", err)
	case !found:
		return telematics.Bulk{}, telematics.NoSuchBulk(id)
	}
	return b, nil
}

func (s *Store) bulk(ctx context.Context, id telematics.BulkID) (telematics.Bulk, bool, error) {
	b, now, found, err := s.bulkOrder(ctx, id)
	if err != nil || !found {
		return b, found, err
	}
	// refusals are written once, after the last command: read them first, so that a
	// vehicle is not missed by both.
	refusals, err := s.bulkRefusals(ctx, id)
	if err != nil {
		return b, true, err
	}
	commands, err := selectCommands(ctx, s.db.Pool, durable(recorded(`where bulk_id = $1`)), id)
	if err != nil {
		return b, true, err
	}
	made := make(map[telematics.VehicleID]*telematics.Command, len(commands))
	for _, c := range commands {
		made[c.Vehicle] = &c
	}
	for _, v := range b.Vehicles {
		item := telematics.BulkItem{Vehicle: v, Command: made[v]}
		if item.Command == nil { // else it was believed lost: Postgres did not reply
			item.Refusal = cmp.Or(refusals[v], b.Abandoned(now))
		}
		b.Items = append(b.Items, item)
	}
	return b, true, nil
}

// bulkRow is a row of bulks, read at a time by Postgres's clock.
type bulkRow struct {
	telematics.Bulk
	parameters *string
	vehicles   pq.Int64Array
	now        time.Time
}

const bulkColumns = `id, action, parameters, vehicle_ids, actor_subject, actor_role, actor_agency_id, request_id, requested_at,
	clock_timestamp() as now`

// fields are where bulkColumns go.
func (r *bulkRow) fields() []any {
	return []any{
		&r.ID, &r.Action, &r.parameters, &r.vehicles, &r.Actor.Subject, &r.Actor.Role, pg.OrZero(&r.Actor.Agency), pg.OrZero(&r.RequestID),
		pg.UTC(&r.Requested), &r.now,
	}
}

func (r *bulkRow) bulk() (b telematics.Bulk, err error) {
	b = r.Bulk
	b.Attention, err = activity.DecodeAttention(r.parameters)
	for _, v := range r.vehicles {
		b.Vehicles = append(b.Vehicles, telematics.VehicleID(v))
	}
	return b, err
}

// bulkOrder returns an order to many vehicles, and the time by Postgres's clock.
func (s *Store) bulkOrder(ctx context.Context, id telematics.BulkID) (b telematics.Bulk, now time.Time, found bool, err error) {
	var row bulkRow
	if found, err = pg.One(ctx, s.db.Pool, row.fields(), `select `+bulkColumns+` from bulks where id = $1`, id); err != nil || !found {
		return telematics.Bulk{}, time.Time{}, false, err
	}
	b, err = row.bulk()
	return b, row.now, true, err
}

// Bulks implements httpapi.Bulks: ids grow with time.
func (s *Store) Bulks(ctx context.Context, q telematics.BulkQuery) ([]telematics.CountedBulk, error) {
	bulks, err := pg.Read(ctx, s.db.Lists, (*countedBulkRow).fields, (*countedBulkRow).bulk, `
		with page as materialized (
			select `+bulkColumns+` from bulks
			where ($1::bigint = 0 or actor_agency_id = $1) and ($2::uuid = '`+uuid.Nil.String()+`' or id < $2)
			order by id desc
			limit nullif($3::bigint, 0)
		)
		select page.*,
			(select count(*) from bulk_refusals r where r.bulk_id = page.id
				and not exists (select from commands c where c.bulk_id = page.id and c.vehicle_id = r.vehicle_id)
				and not exists (select from settled_commands c where c.bulk_id = page.id and c.vehicle_id = r.vehicle_id)) as refused,
			(select coalesce(json_object_agg(state, n), '{}') from (
				select state, count(*) as n from (
					select state from commands c where c.bulk_id = page.id
					union all select state from settled_commands c where c.bulk_id = page.id
				) all_commands group by state
			) counted) as states
		from page order by id desc`, int64(q.Agency), q.Before, q.Limit)
	return bulks, unavailable.Wrap("list bulks", err)
}

type countedBulkRow struct {
	bulkRow
	refused int
	states  []byte // JSON: numbers of commands by state
}

func (r *countedBulkRow) fields() []any { return append(r.bulkRow.fields(), &r.refused, &r.states) }

func (r *countedBulkRow) bulk() (b telematics.CountedBulk, err error) {
	var states map[telematics.State]int
	if err := json.Unmarshal(r.states, &states); err != nil {
		return b, err
	}
	if b.Bulk, err = r.bulkRow.bulk(); err != nil {
		return b, err
	}
	b.Outcomes = map[telematics.Outcome]int{telematics.NotExecuted: r.refused}
	rest := len(b.Vehicles) - r.refused
	for state, n := range states {
		b.Outcomes[state.Outcome()] += n
		rest -= n
	}
	left := telematics.Undecided
	if abandoned := b.Abandoned(r.now); abandoned != nil {
		left = abandoned.Outcome
	}
	b.Outcomes[left] += rest
	return b, nil
}

func (s *Store) bulkRefusals(ctx context.Context, id telematics.BulkID) (map[telematics.VehicleID]*telematics.Error, error) {
	rows, err := pg.Pairs[telematics.VehicleID, []byte](ctx, s.db.Pool, `
		select vehicle_id, error from bulk_refusals where bulk_id = $1`, id)
	if err != nil {
		return nil, err
	}
	refusals := make(map[telematics.VehicleID]*telematics.Error, len(rows))
	for vehicle, text := range rows {
		var refusal telematics.Failure
		if err := json.Unmarshal(text, &refusal); err != nil {
			return nil, fmt.Errorf("refusal of vehicle %d: %w", vehicle, err)
		}
		refusals[vehicle] = refusal.Err()
	}
	return refusals, nil
}
