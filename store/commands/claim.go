package commands

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/lib/pq"

	"motorpool/store/activity"
	"motorpool/store/pg"
	"motorpool/store/unavailable"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// claimColumns are the stored columns of an accepted command. A null version is not checked.
var claimColumns = pg.RowSet{Name: "claim", Columns: []string{
	"id uuid", "vehicle_id bigint", "agency_id bigint", "unit text", "action text", "parameters jsonb", "lane text",
	"instance text", "actor_subject text", "actor_role text", "actor_agency_id bigint", "request_id uuid",
	"requested_at timestamptz", "deadline timestamptz", "bulk_id uuid", "booking_id bigint", "version bigint",
	"assurance smallint", "answer_by timestamptz",
	"key_agency_id bigint", "key_subject text", "key text", "key_fingerprint text",
}}

// claimRow returns the values of claimColumns.
func claimRow(c *telematics.Command) []any {
	var attention any
	if c.Attention != nil {
		attention = pg.JSON(activity.EncodeAttention(c.Attention))
	}
	row := []any{
		c.ID, int64(c.Vehicle), int64(c.Agency), string(c.Unit), string(c.Action), attention, string(c.Lane),
		c.Instance, c.Actor.Subject, string(c.Actor.Role), pg.Nullable(int64(c.Actor.Agency)), pg.Nullable(c.RequestID),
		pg.Timestamp(c.Requested), pg.Timestamp(c.Deadline), pg.Nullable(c.Bulk), pg.Nullable(c.Booking), pg.Nullable(c.Version),
		encodeAssurance(c), pg.Timestamp(c.BestEffort.AnswerBy),
	}
	if c.Key == nil {
		return append(row, nil, nil, nil, nil)
	}
	k := newKeyRow(c.Key)
	return append(row, k.AgencyID, k.Subject, k.Key, k.Fingerprint)
}

// claimed is the result of a claim.
type claimed struct {
	delivery.Claim
	locked bool // another transaction has locked the vehicle
	// There is no such vehicle, or the occupant of the lane could not be read, though other lanes
	// of the batch were taken.
	err error
}

func (c claimed) undecided() bool {
	return c.err == nil && c.Seq == 0 && c.Occupant == nil && !c.Stale && !c.KeyTaken
}

// claimAttempts limits how often a claim is repeated because the lane was released between the
// attempt to take it and the read of its occupant. Each time another command had the lane, so
// more than two are needed only if many callers settle their commands immediately.
const claimAttempts = 64

var errLaneFlaps = fmt.Errorf("no lane after %d attempts: other commands keep taking it", claimAttempts)

// Claim implements broker.Commands. A vehicle by which a stale claim was accepted is removed from
// the cache. If the context ends before Claim returns, the command may be open.
func (s *Store) Claim(ctx context.Context, c *telematics.Command) (delivery.Claim, error) {
	claim, err := s.claimVersion(ctx, c)
	switch {
	case err != nil || claim.Stale:
		// The cached vehicle was not confirmed; without it, the next order fails before it
		// claims.
		s.cache.Forget(c.Vehicle)
	case claim.Taken() && c.Version != 0:
		s.cache.Confirm(c.Vehicle, c.Version)
	}
	return claim, err
}

// claimVersion claims a command. The claim of a command with a version is stale unless its vehicle
// has that version, too, by a read that is not older than the claim.
func (s *Store) claimVersion(ctx context.Context, c *telematics.Command) (delivery.Claim, error) {
	claim, err := s.claims.Do(ctx, c)
	retries := s.db.NewRetries()
	for attempts := 1; err == nil && claim.undecided(); claim, err = s.claims.Do(ctx, c) {
		if claim.locked {
			if !retries.Next(ctx) {
				err = cmp.Or[error](
					ctx.Err(),
					s.db.RowLocked(ctx, fmt.Sprintf("vehicle %d", c.Vehicle), "vehicles", "id", int64(c.Vehicle)),
				)
				break
			}
			continue
		}
		// The occupant was settled before we could see it: the lane may be free now.
		if attempts++; attempts > claimAttempts {
			err = errLaneFlaps
			break
		}
	}
	if isKeyTaken(err) {
		return delivery.Claim{KeyTaken: true}, nil
	}
	if locked, ok := errors.AsType[*pg.LockedError](err); ok {
		return delivery.Claim{}, refuseLocked(locked)
	}
	if known, ok := errors.AsType[*telematics.Error](claim.err); ok {
		return delivery.Claim{}, known
	}
	return claim.Claim, unavailable.Wrap("claim lane", cmp.Or(err, claim.err))
}

// refuseLocked is the refusal of a command whose vehicle, or the table, stayed locked. Nothing
// was written.
func refuseLocked(locked *pg.LockedError) *telematics.Error {
	refusal := telematics.Unavailable("The vehicle", locked)
	refusal.Message = fmt.Sprintf("The vehicle's record is locked: %s; nothing was sent.", locked.Brief())
	return refusal
}

// claim takes the lanes that are free, and reads the occupants of the others. Of several commands
// with one key it decides the first: the others are claimed again, and find the key in use.
func (s *Store) claim(ctx context.Context, commands []*telematics.Command) ([]claimed, error) {
	distinct := withDistinctKeys(commands)
	decided, err := s.takeLanes(ctx, distinct)
	if err != nil {
		return nil, err
	}
	var refused []*telematics.Command
	for _, c := range distinct {
		if _, ok := decided[c.ID]; !ok {
			refused = append(refused, c)
		}
	}
	occupants, err := s.occupants(ctx, refused)
	for i, c := range refused {
		decided[c.ID] = claimed{Claim: delivery.Claim{Occupant: occupants[i]}, err: err}
	}
	return pg.Map(commands, func(c *telematics.Command) claimed { return decided[c.ID] }), nil
}

// withDistinctKeys returns the commands without those whose key an earlier one has.
func withDistinctKeys(commands []*telematics.Command) []*telematics.Command {
	type key struct {
		agency       telematics.AgencyID
		subject, key string
	}
	var met map[key]bool
	distinct := make([]*telematics.Command, 0, len(commands))
	for _, c := range commands {
		if c.Key != nil {
			k := key{c.Key.Agency, c.Key.Subject, c.Key.Key}
			if met[k] {
				continue
			}
			if met == nil {
				met = map[key]bool{}
			}
			met[k] = true
		}
		distinct = append(distinct, c)
	}
	return distinct
}

// takeLanes stores the commands whose lanes are free [LAW-5]. It returns their numbers with the
// time by Postgres's clock, and the commands that are stale, whose vehicle is locked or does not
// exist, or whose key is in use. The lanes of commands that are not in the result are occupied.
//
// Claims of one vehicle are serialised over all instances: each draws its number only when it
// holds the lock of the vehicle's row. Otherwise one could draw a number, wait for the lane, and
// take it after a command with a greater number was claimed and settled.
//
// The version is computed from the vehicle's row as it is once that is locked, and from the
// unit's row as it was when the statement began, which is as good as a read before the claim. An
// accepted command has a unit, so a vehicle without one has no version.
//
// All vehicles are locked, in order, before the first row is inserted, since sorting needs all of
// them. Of several commands for one lane, the first gets it.
//
// The statement waits for no other transaction, however long that is open: it passes over a
// vehicle that is locked, and a lane with an open command, even one that is being settled. Only a
// key that another instance inserts at the same moment makes it wait, and fails it. Keys are
// inserted in order, so that no two batches can wait for each other. A command does not find its
// own key in use, but itself in its lane: a driver retries a claim whose reply was lost. Scalar
// subqueries look single rows up: as "exists", they would be planned as joins with whole tables.
func (s *Store) takeLanes(ctx context.Context, commands []*telematics.Command) (map[telematics.CommandID]claimed, error) {
	rows := make([][]any, len(commands))
	kind := claimKind{one: len(commands) == 1}
	for i, c := range commands {
		rows[i] = claimRow(c)
		kind.keyed = kind.keyed || c.Key != nil
	}
	claims := make(map[telematics.CommandID]claimed, len(commands))
	var id uuid.UUID
	var missing telematics.VehicleID
	var claim claimed
	err := pg.Each(ctx, s.db.Prepared, []any{
		&id, &claim.Seq, &claim.Stale, &claim.locked, &claim.KeyTaken, pg.OrZero(&missing), pg.OrZero(&claim.At),
	}, func() error {
		if claims[id] = claim; missing != 0 {
			claims[id] = claimed{err: telematics.NoSuchVehicle(missing)}
		}
		return nil
	}, claimStatements[kind], pg.Parameters(rows)...)
	return claims, err
}

// claimKind selects the parts of a statement that claims, as settleKind does.
type claimKind struct {
	one   bool // command
	keyed bool // there may be keys
}

var claimStatements = map[claimKind]string{
	{}:                       claimStatement(claimMany, noKeys),
	{keyed: true}:            claimStatement(claimMany, withKeys),
	{one: true}:              claimStatement(claimOne, noKeys),
	{one: true, keyed: true}: claimStatement(claimOne, withKeys),
}

// keyParts are the parts of a statement that concern keys.
type keyParts struct {
	taken string // whether the key of a claim is in use
	take  string
}

func claimStatement(held string, keys keyParts) string {
	return `with ` + held + `, checked as (
		select claim.*, v.id as held_id, v.id is null and (select true from vehicles where id = claim.vehicle_id) is not null as locked,
			claim.version is not null and claim.version is distinct from (
				select ` + vehicles.RecordVersion + ` from units u where u.vehicle_id = v.id
			) as stale,
			case when claim.lane = 'unit' then command_awaiting_answer(claim.unit) end as awaits,
			` + keys.taken + ` as key_taken
		from claim left join held v on v.id = claim.vehicle_id
	), taken as (
		insert into commands (id, vehicle_id, agency_id, unit, action, parameters, lane, instance,
			actor_subject, actor_role, actor_agency_id, request_id, requested_at, deadline, bulk_id, booking_id,
			assurance, answer_by)
		select id, held_id, agency_id, unit, action, parameters, lane, instance,
			actor_subject, actor_role, actor_agency_id, request_id, requested_at, deadline, bulk_id, booking_id,
			assurance, answer_by
		from checked
		where held_id is not null and not stale and not key_taken and awaits is null and (
			select true from commands o where o.vehicle_id = held_id and o.lane = checked.lane
				and o.state in ('accepted', 'sent', 'received')
		) is null
		order by place
		on conflict (vehicle_id, lane) where state in ('accepted', 'sent', 'received') do nothing
		returning id, seq
	)` + keys.take + `
		select id, seq, false as stale, false as locked, false as key_taken, null::bigint as missing, clock_timestamp() as at from taken
		union all
		select id, 0, stale and not locked, locked, key_taken,
			case when held_id is null and not locked and not stale then vehicle_id end, null
		from checked where stale or held_id is null or key_taken`
}

var (
	claimMany = claimColumns.Many() + `, held as materialized (
		select id, agency_id, powertrain, capabilities, moved_at from vehicles where id = any ($2) order by id for no key update skip locked
	)`
	claimOne = claimColumns.One() + `, held as materialized (
		select id, agency_id, powertrain, capabilities, moved_at from vehicles where id = $2 for no key update skip locked
	)`

	noKeys   = keyParts{taken: `false`}
	withKeys = keyParts{
		taken: `key is not null and (
				select true from idempotency_keys k where k.agency_id = key_agency_id and k.subject = key_subject and k.key = claim.key
					and k.command_id is distinct from claim.id
			) is not null`,
		take: `, named as (
		insert into idempotency_keys (agency_id, subject, key, fingerprint, command_id)
		select key_agency_id, key_subject, key, decode(key_fingerprint, 'hex'), id
		from claim join taken using (id)
		where key is not null
		order by key_agency_id, key_subject, key
	)`,
	}
)

// occupants returns what keeps each of the refused commands from its lane: the open command in it,
// or, in the lane of a unit, the command whose answer the unit awaits. Nil: nothing any more.
func (s *Store) occupants(ctx context.Context, refused []*telematics.Command) ([]*telematics.Command, error) {
	occupants := make([]*telematics.Command, len(refused))
	if len(refused) == 0 {
		return occupants, nil
	}
	vehicles, lanes, units := make([]int64, len(refused)), make([]string, len(refused)), make([]string, len(refused))
	for i, c := range refused {
		vehicles[i], lanes[i], units[i] = int64(c.Vehicle), string(c.Lane), string(c.Unit)
	}
	type occupantRow struct {
		commandRow
		place int // of the refused command, from 1
	}
	fields := func(r *occupantRow) []any { return append([]any{&r.place}, r.fields()...) }
	_, err := pg.Read(ctx, s.db.Prepared, fields, func(r *occupantRow) (c telematics.Command, err error) {
		c, err = r.command()
		occupants[r.place-1] = &c
		return c, err
	}, `
		select place, occupant.* from unnest($1::bigint[], $2::text[], $3::text[])
			with ordinality as wanted (vehicle, wanted_lane, wanted_unit, place), lateral (
			(select `+commandColumns+` from commands
			where vehicle_id = vehicle and lane = wanted_lane and state in ('accepted', 'sent', 'received')
			limit 1) -- there is no more, and each is looked up
			union all
			(select `+commandColumns+` from (select command_awaiting_answer(wanted_unit) as awaits
				where wanted_lane = 'unit') as awaited join commands on id = awaits)
			limit 1
		) as occupant`,
		pq.Array(vehicles), pq.Array(lanes), pq.Array(units))
	return occupants, err
}
