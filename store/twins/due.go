package twins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// The index of vehicles whose state is in Redis and not in Postgres yet, by the time at which it
// is due there (dueKey), and of those that an instance is writing, by the time at which its lease
// ends (writingKey). In a cluster each part has a separate index, next to its vehicles.
const (
	dueKey     = "motorpool:state-due"
	writingKey = "motorpool:state-writing"
)

// leaseScript leases vehicles that are due, or whose lease has ended, to the caller, and those that
// are due or leased until later than they can be: the clock had leapt ahead. KEYS: due, writing.
// ARGV: now and the end of the lease in ms, the most vehicles, the latest time in ms. It returns
// when the first one was due, and the vehicles.
var leaseScript = goredis.NewScript(`
local due, writing, now, lease, most, latest = KEYS[1], KEYS[2], ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local function upTo(key, count)
  local found = redis.call('ZRANGEBYSCORE', key, '-inf', now, 'LIMIT', 0, count)
  if #found == 0 then
    found = redis.call('ZRANGEBYSCORE', key, '(' .. latest, '+inf', 'LIMIT', 0, count)
  end
  return found
end
local taken = upTo(writing, most)
local first = redis.call('ZRANGE', due, 0, 0, 'WITHSCORES')[2]
local fresh = upTo(due, most - #taken)
if #fresh > 0 then
  redis.call('ZREM', due, unpack(fresh))
end
for _, vehicle in ipairs(fresh) do
  taken[#taken + 1] = vehicle
end
if #taken > 0 then
  local leases = {}
  for i, vehicle in ipairs(taken) do
    leases[2 * i - 1], leases[2 * i] = lease, vehicle
  end
  redis.call('ZADD', writing, unpack(leases))
end
return {first or '', taken}
`)

// dues is that index. It is safe for concurrent use.
type dues struct {
	db           *redis.DB
	interval     time.Duration
	due, writing []string // keys of the parts

	// For each part: for how many ms the first vehicle had been due at the latest query.
	overdue []atomic.Int64
}

func newDues(db *redis.DB, interval time.Duration) *dues {
	due := db.Parts(dueKey)
	return &dues{db: db, interval: interval, due: due, writing: db.Parts(writingKey), overdue: make([]atomic.Int64, len(due))}
}

// marks add vehicles to the index, as a part of a round trip.
type marks struct {
	ctx     context.Context
	byPart  map[string][]goredis.Z
	replies []*goredis.IntCmd
}

// newMarks returns the marks of updates: each state is due after the interval, an urgent one
// within urgentWithin, and none later than it was due already. The last tenth of the interval is
// random, so that states that came together are not written together.
func (d *dues) newMarks(ctx context.Context, updates []update) *marks {
	m := &marks{ctx: ctx, byPart: map[string][]goredis.Z{}}
	now := time.Now()
	for _, u := range updates {
		within := d.interval - rand.N(d.interval/spread+1)
		if u.urgent || u.state.isAwaited() {
			within = min(within, urgentWithin)
		}
		d.mark(m.byPart, u.state, now.Add(within))
	}
	return m
}

// mark adds a state with its due time to the marks of its part.
func (d *dues) mark(byPart map[string][]goredis.Z, s *state, due time.Time) {
	key := d.due[d.db.Part(hashTag(s.vehicle))]
	byPart[key] = append(byPart[key], goredis.Z{Score: float64(due.UnixMilli()), Member: int64(s.vehicle)})
}

func (m *marks) add(pipe goredis.Pipeliner) {
	for key, vehicles := range m.byPart {
		m.replies = append(m.replies, pipe.ZAddLT(m.ctx, key, vehicles...))
	}
}

func (m *marks) err() error {
	for _, reply := range m.replies {
		if err := reply.Err(); err != nil {
			return unavailable.Wrap("note what is to be stored", err)
		}
	}
	return nil
}

// makeDue makes the states of vehicles due now.
func (d *dues) makeDue(ctx context.Context, states []*state) error {
	if len(states) == 0 {
		return nil
	}
	byPart := map[string][]goredis.Z{}
	for _, s := range states {
		d.mark(byPart, s, time.Now())
	}
	pipe := d.db.Client.Pipeline()
	for key, vehicles := range byPart {
		pipe.ZAddLT(ctx, key, vehicles...)
	}
	_, err := pipe.Exec(ctx)
	return unavailable.Wrap("note what is to be stored soon", err)
}

// lease leases up to most due vehicles of one part to this instance. Call done once they are
// written; after dueLease another instance may lease them.
func (d *dues) lease(ctx context.Context, part, most int) ([]telematics.VehicleID, error) {
	now := time.Now()
	replies, err := d.db.RunScript(ctx, leaseScript, []redis.ScriptCall{{
		Keys: []string{d.due[part], d.writing[part]}, Args: []any{now.UnixMilli(), now.Add(dueLease).UnixMilli(), most, now.Add(2 * max(d.interval, dueLease)).UnixMilli()},
	}})
	if err != nil {
		return nil, err
	}
	reply, err := replies[0].Slice()
	if err != nil || len(reply) != 2 {
		return nil, unavailable.Wrap("read what is to be stored", cmp.Or(err, errUnexpectedReply))
	}
	overdue := int64(0)
	if first, err := strconv.ParseFloat(fmt.Sprint(reply[0]), 64); err == nil {
		overdue = max(0, now.UnixMilli()-int64(first))
	}
	d.overdue[part].Store(overdue)
	list, _ := reply[1].([]any)
	vehicles := make([]telematics.VehicleID, 0, len(list))
	for _, text := range list {
		if id, err := strconv.ParseInt(fmt.Sprint(text), 10, 64); err == nil {
			vehicles = append(vehicles, telematics.VehicleID(id))
		}
	}
	return vehicles, nil
}

// overdueFor returns for how long the oldest state of a part has been due.
func (d *dues) overdueFor(part int) time.Duration {
	return time.Duration(d.overdue[part].Load()) * time.Millisecond
}

var errUnexpectedReply = errors.New("unexpected reply")

// done ends the lease of vehicles of a part.
func (d *dues) done(ctx context.Context, part int, vehicles []telematics.VehicleID) error {
	if len(vehicles) == 0 {
		return nil
	}
	members := make([]any, len(vehicles))
	for i, id := range vehicles {
		members[i] = int64(id)
	}
	return unavailable.Wrap("note what is stored", d.db.Client.ZRem(ctx, d.writing[part], members...).Err())
}

// putBack makes vehicles of a part due again in a moment. Where that fails, they are due when the
// lease ends.
func (d *dues) putBack(ctx context.Context, part int, vehicles []telematics.VehicleID) error {
	again := make([]goredis.Z, len(vehicles))
	for i, id := range vehicles {
		again[i] = goredis.Z{Score: float64(time.Now().Add(unavailable.RetryAfter).UnixMilli()), Member: int64(id)}
	}
	if err := d.db.Client.ZAddNX(ctx, d.due[part], again...).Err(); err != nil {
		return unavailable.Wrap("note what is to be stored", err)
	}
	return d.done(ctx, part, vehicles)
}

// urgentFields are the fields whose changes are in Postgres within urgentWithin, like reports
// that a caller awaits, and not after the state interval. They show whether the vehicle can be
// used, and whether it moves.
var urgentFields = []telematics.Field{telematics.IsLocked, telematics.EngineRuns, telematics.Ignition, telematics.KeyStatus}

// changesConnectivity reports whether an update changes the connectivity that is computed from
// Postgres, so that the state is due now.
func (t *Twins) changesConnectivity(u update, o outcome) bool {
	before := o.before
	if before.IsZero() {
		before = u.before
	}
	return o.offline || before.IsZero() || u.seen.Sub(before) > t.quietAfter()
}

// quietAfter returns the silence after which a report is urgent. After a shorter silence plus the
// state interval, the contact in Postgres is still younger than OnlineFor.
func (t *Twins) quietAfter() time.Duration { return (telematics.OnlineFor - t.stateInterval) / 2 }

// noteOffline notes in Redis which units are not online, so that their next reports are urgent.
// Where that fails, those reports are written after the state interval.
func (t *Twins) noteOffline(ctx context.Context, changes []telematics.Change) {
	offline := map[telematics.VehicleID]bool{}
	for _, c := range changes {
		if c.Presence != "" {
			offline[c.Vehicle] = isOffline(c.Presence)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, redis.ReadTimeout)
	defer cancel()
	if err := t.redis.setOffline(ctx, offline); err != nil {
		t.log.Debug("presence not noted in redis", "vehicles", len(offline), "err", err)
	}
}

// isOffline reports whether a presence is offline or asleep.
func isOffline(p telematics.PresenceStatus) bool {
	return p == telematics.Offline || p == telematics.Standby
}

// runDue writes due states to Postgres, until the context ends.
func (t *Twins) runDue(ctx context.Context) error {
	every := min(dueEvery, max(t.stateInterval/idleChecks, time.Millisecond))
	for ctx.Err() == nil {
		sleep(ctx, every)
		for part := range t.dues.due {
			var err error
			_ = t.guard.Do("write due state", func() { err = t.writeDue(ctx, part) })
			if err != nil && ctx.Err() == nil {
				t.log.Warn("reported state that is due not written to postgres, retrying", "err", err)
				break
			}
		}
	}
	return nil
}

// writeDue writes the due states of a part, in batches that take at most 1/dueShare of the time,
// and without pauses where the oldest is overdue by overdueAfter.
func (t *Twins) writeDue(ctx context.Context, part int) error {
	for ctx.Err() == nil {
		vehicles, err := t.dues.lease(ctx, part, dueBatch)
		if err != nil || len(vehicles) == 0 {
			return err
		}
		began := time.Now()
		if err := t.storeDue(ctx, part, vehicles); err != nil {
			return cmp.Or(t.dues.putBack(context.WithoutCancel(ctx), part, vehicles), err)
		}
		if len(vehicles) < dueBatch {
			return nil
		}
		if t.dues.overdueFor(part) < overdueAfter {
			sleep(ctx, pause(time.Since(began), dueShare))
		}
	}
	return nil
}

// storeDue writes vehicles from Redis to Postgres.
func (t *Twins) storeDue(ctx context.Context, part int, vehicles []telematics.VehicleID) error {
	found, err := t.redis.read(ctx, vehicles)
	if err != nil {
		return err
	}
	states := make([]dueState, 0, len(found))
	for id, s := range found {
		if s.unit != "" {
			states = append(states, dueState{vehicle: id, redisState: s})
		}
	}
	stored, left, err := t.stored.storeDue(ctx, states, t.redis.newBase)
	switch {
	case len(left) == len(states) && len(left) > 0:
		return err
	case len(left) > 0:
		t.log.Warn("reported state not written to postgres, retrying", "vehicles", len(left), "err", err)
	case err != nil:
		t.log.Error("reported state refused by postgres", "err", err)
	}
	if err := t.redis.setStored(ctx, stored); err != nil {
		return err
	}
	if len(left) > 0 {
		if err := t.dues.putBack(ctx, part, left); err != nil {
			return err
		}
	}
	return t.dues.done(ctx, part, slices.DeleteFunc(vehicles, func(id telematics.VehicleID) bool { return slices.Contains(left, id) }))
}

// lag returns for how long the oldest state has been due in Postgres.
func (t *Twins) lag(now time.Time) time.Duration {
	lag := t.toPostgres.lag(now)
	for part := range t.dues.due {
		lag = max(lag, t.dues.overdueFor(part))
	}
	return lag
}
