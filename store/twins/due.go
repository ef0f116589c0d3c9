package twins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/guard"
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

// doneScript ends the leases of vehicles until a time, and not those of another instance to which
// they were due again meanwhile. KEYS: writing. ARGV: the end of the lease in ms, the vehicles.
var doneScript = goredis.NewScript(`
for i = 2, #ARGV do
  if tonumber(redis.call('ZSCORE', KEYS[1], ARGV[i]) or 0) == tonumber(ARGV[1]) then
    redis.call('ZREM', KEYS[1], ARGV[i])
  end
end
`)

// lease is the right of an instance to write vehicles of one part that are due.
type lease struct {
	part     int
	until    int64 // in ms
	vehicles []telematics.VehicleID
}

// dues is that index. It is safe for concurrent use.
type dues struct {
	db           *redis.DB
	interval     time.Duration
	due, writing []string // keys of the parts

	// For each part: for how many ms the first vehicle had been due at the latest query.
	overdue []atomic.Int64
}

func newDues(db *redis.DB, interval time.Duration) *dues {
	due, writing := db.Parts(dueKey, math.MaxInt), db.Parts(writingKey, math.MaxInt)
	return &dues{db: db, interval: interval, due: due, writing: writing, overdue: make([]atomic.Int64, len(due))}
}

// mark adds vehicles to the index by due times, and none later than it was due already. It returns
// the replies, which are there when the pipeline has run.
func (d *dues) mark(ctx context.Context, pipe goredis.Pipeliner, due map[telematics.VehicleID]time.Time) (replies []*goredis.IntCmd) {
	byPart := map[string][]goredis.Z{}
	for id, at := range due {
		key := d.due[d.db.Part(hashTag(id))]
		byPart[key] = append(byPart[key], goredis.Z{Score: float64(at.UnixMilli()), Member: int64(id)})
	}
	for key, vehicles := range byPart {
		replies = append(replies, pipe.ZAddLT(ctx, key, vehicles...))
	}
	return replies
}

// dueTimes returns when the states of updates are due: after the interval, and urgent ones within
// urgentWithin. The last tenth of the interval is random, so that states that came together are
// not written together.
func (d *dues) dueTimes(updates []update) map[telematics.VehicleID]time.Time {
	now, due := time.Now(), make(map[telematics.VehicleID]time.Time, len(updates))
	for _, u := range updates {
		within := d.interval - rand.N(d.interval/spread+1)
		if u.urgent || len(u.waiting) > 0 {
			within = min(within, urgentWithin)
		}
		due[u.vehicle] = now.Add(within)
	}
	return due
}

// makeDue makes the states of vehicles due now.
func (d *dues) makeDue(ctx context.Context, vehicles []telematics.VehicleID) error {
	if len(vehicles) == 0 {
		return nil
	}
	due := make(map[telematics.VehicleID]time.Time, len(vehicles))
	for _, id := range vehicles {
		due[id] = time.Now()
	}
	pipe := d.db.Client.Pipeline()
	d.mark(ctx, pipe, due)
	_, err := pipe.Exec(ctx)
	return unavailable.Wrap("note what is to be stored soon", err)
}

// lease leases up to most due vehicles of one part to this instance. Call done once they are
// written; after dueLease another instance may lease them.
func (d *dues) lease(ctx context.Context, part, most int) (lease, error) {
	now := time.Now()
	taken := lease{part: part, until: now.Add(dueLease).UnixMilli()}
	replies := d.db.RunScript(ctx, leaseScript, []redis.ScriptCall{
		{
			Keys: []string{
				d.due[part], d.writing[part],
			},
			Args: []any{now.UnixMilli(), taken.until, most, now.Add(2 * max(d.interval, dueLease)).UnixMilli()},
		},
	})
	reply, err := replies[0].Slice()
	if err != nil || len(reply) != 2 {
		return lease{}, unavailable.Wrap("read what is to be stored", cmp.Or(err, errUnexpectedReply))
	}
	overdue := int64(0)
	if first, err := strconv.ParseFloat(fmt.Sprint(reply[0]), 64); err == nil {
		overdue = max(0, now.UnixMilli()-int64(first))
	}
	d.overdue[part].Store(overdue)
	list, _ := reply[1].([]any)
	for _, text := range list {
		if id, err := strconv.ParseInt(fmt.Sprint(text), 10, 64); err == nil {
			taken.vehicles = append(taken.vehicles, telematics.VehicleID(id))
		}
	}
	return taken, nil
}

// overdueFor returns for how long the oldest state of a part has been due.
func (d *dues) overdueFor(part int) time.Duration {
	return time.Duration(d.overdue[part].Load()) * time.Millisecond
}

var errUnexpectedReply = errors.New("unexpected reply")

// done ends a lease of some of its vehicles.
func (d *dues) done(ctx context.Context, l lease, vehicles []telematics.VehicleID) error {
	if len(vehicles) == 0 {
		return nil
	}
	args := make([]any, 1, 1+len(vehicles))
	args[0] = l.until
	for _, id := range vehicles {
		args = append(args, int64(id))
	}
	err := d.db.RunScript(ctx, doneScript, []redis.ScriptCall{{Keys: []string{d.writing[l.part]}, Args: args}})[0].Err()
	if errors.Is(err, goredis.Nil) {
		return nil
	}
	return unavailable.Wrap("note what is stored", err)
}

// putBack makes some vehicles of a lease due again in a moment. Where that fails, they are due when
// the lease ends.
func (d *dues) putBack(ctx context.Context, l lease, vehicles []telematics.VehicleID) error {
	again := make([]goredis.Z, len(vehicles))
	for i, id := range vehicles {
		again[i] = goredis.Z{Score: float64(time.Now().Add(unavailable.RetryAfter).UnixMilli()), Member: int64(id)}
	}
	if err := d.db.Client.ZAddNX(ctx, d.due[l.part], again...).Err(); err != nil {
		return unavailable.Wrap("note what is to be stored", err)
	}
	return d.done(ctx, l, vehicles)
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
	return o.offline || before.IsZero() || u.At.Sub(before) > t.quietAfter()
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
	var outage guard.Outage
	for guard.Pause(ctx, every) {
		if err := t.writeDueParts(ctx); !redis.NotAdmitted(err) {
			outage.Note(ctx, t.log, "reported state that is due not written to postgres", err)
		}
	}
	return nil
}

// writeDueParts writes the due states of all parts, until one fails.
func (t *Twins) writeDueParts(ctx context.Context) (err error) {
	for part := range t.dues.due {
		_ = t.guard.Do("write due state", func() { err = t.writeDue(ctx, part) })
		if err != nil {
			return err
		}
	}
	return nil
}

// writeDue writes the due states of a part, in batches that take at most 1/dueShare of the time,
// and without pauses where the oldest is overdue by overdueAfter.
func (t *Twins) writeDue(ctx context.Context, part int) error {
	for ctx.Err() == nil {
		due, err := t.dues.lease(ctx, part, dueBatch)
		if err != nil || len(due.vehicles) == 0 {
			return err
		}
		began := time.Now()
		if err := t.storeDue(ctx, due); err != nil {
			return cmp.Or(t.dues.putBack(context.WithoutCancel(ctx), due, due.vehicles), err)
		}
		if len(due.vehicles) < dueBatch {
			return nil
		}
		if t.dues.overdueFor(part) < overdueAfter {
			guard.Pause(ctx, pause(time.Since(began), dueShare))
		}
	}
	return nil
}

// storeDue writes leased vehicles from Redis to Postgres.
func (t *Twins) storeDue(ctx context.Context, due lease) error {
	found, err := t.redis.read(ctx, due.vehicles)
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
		if err := t.dues.putBack(ctx, due, left); err != nil {
			return err
		}
	}
	return t.dues.done(ctx, due, slices.DeleteFunc(due.vehicles, func(id telematics.VehicleID) bool { return slices.Contains(left, id) }))
}

// lag returns for how long the oldest state has been due in Postgres.
func (t *Twins) lag(now time.Time) time.Duration {
	lag := t.queue.lag(now)
	for part := range t.dues.due {
		lag = max(lag, t.dues.overdueFor(part))
	}
	return lag
}
