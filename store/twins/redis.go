package twins

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"motorpool/guard"
	"motorpool/store/groupcommit"
	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// stateKey names the hash of a vehicle: unit, seen (microseconds since the epoch), and for each
// section its row and, under at:<section>, the token of the writer. For the writer to Postgres it
// has base, reports and offline: see redisState.
func stateKey(v telematics.VehicleID) string { return "motorpool:{" + hashTag(v) + "}:latest" }

func hashTag(v telematics.VehicleID) string { return "vehicle-" + strconv.FormatInt(int64(v), 10) }

// redisState is the state of a vehicle in Redis.
type redisState struct {
	unit     telematics.Unit
	seen     time.Time
	snapshot telematics.Snapshot
	tokens   []string // by the section's place: that a writer must name to replace it; nil: none
	base     base
	reports  int // since it was last written to Postgres
}

// base is the version of the snapshot in Postgres that the state in Redis includes: its updated_at
// in microseconds (0: there was no snapshot), a colon, and a unique token. Empty: there is none,
// and Postgres may have more than Redis.
type base string

// version returns updated_at; false: there is no base.
func (b base) version() (micros int64, ok bool) {
	text, _, _ := strings.Cut(string(b), ":")
	micros, err := strconv.ParseInt(text, 10, 64)
	return micros, err == nil
}

// merge merges readings that were observed by the time seen.
func (s *redisState) merge(seen time.Time, readings iter.Seq2[telematics.Field, telematics.Reading]) {
	if seen.After(s.seen) {
		s.seen = seen
	}
	s.snapshot.Keep(readings)
}

// outcome is the result of an update.
type outcome struct {
	conflict bool      // nothing was written: Redis has not what the update was made from
	before   time.Time // when the unit was seen before; zero: Redis did not have it
	complete bool      // Redis has a base
	offline  bool      // the unit said last that it is offline or asleep
	err      error
}

// updateScript is the compare-and-swap. It does not decode the rows: which reading is newer is
// decided in one place, telematics.Snapshot, by the writer. A hash that another unit wrote is
// dropped: the vehicle has another unit now.
//
// KEYS: the hash. ARGV: unit, seen, lifetime in ms, new token, reports, base, offline, and for each
// section its name, the expected token and the new row, which is empty where the section stays. A
// base is only set where there is none. It returns false where a section is not as expected; else
// when the unit was seen before, whether there is a base, and whether the unit is offline.
var updateScript = goredis.NewScript(`
local key, unit, seen, ttl, token = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local reports, base, offline = ARGV[5], ARGV[6], ARGV[7]
local fields = {'unit', 'seen', 'base', 'offline'}
for i = 8, #ARGV, 3 do
  fields[#fields + 1] = 'at:' .. ARGV[i]
end
local held = redis.call('HMGET', key, unpack(fields))
local former = held[1] and held[1] ~= unit
if former then
  held = {}
end
local set = {'unit', unit}
local function add(field, value)
  set[#set + 1] = field
  set[#set + 1] = value
end
for i = 8, #ARGV, 3 do
  if (held[(i - 8) / 3 + 5] or '') ~= ARGV[i + 1] then
    return false
  end
  if ARGV[i + 2] ~= '' then
    add(ARGV[i], ARGV[i + 2])
    add('at:' .. ARGV[i], token)
  end
end
if former then
  redis.call('DEL', key)
end
if not held[2] or tonumber(held[2]) < tonumber(seen) then
  add('seen', seen)
end
if not held[3] and base ~= '' then
  add('base', base)
  held[3] = base
end
if not held[4] and offline ~= '' then
  add('offline', offline)
  held[4] = offline
end
redis.call('HSET', key, unpack(set))
if reports ~= '0' then
  redis.call('HINCRBY', key, 'reports', reports)
end
redis.call('PEXPIRE', key, ttl)
return {held[2] or '', held[3] and 1 or 0, held[4] and 1 or 0}
`)

// offlineScript notes whether the unit of a vehicle is offline. KEYS: the hash. ARGV: 1 or empty.
var offlineScript = goredis.NewScript(`
if redis.call('EXISTS', KEYS[1]) == 0 then
  return
end
if ARGV[1] == '' then
  redis.call('HDEL', KEYS[1], 'offline')
else
  redis.call('HSET', KEYS[1], 'offline', ARGV[1])
end
`)

// storedScript notes that a state, as it was read, is in Postgres. The base is replaced only where
// it is still the one that was read; where there was none, the token of a section shows that Redis
// was not emptied since. Two instances may subtract the same reports, or reports from before Redis
// was emptied, so the count is kept at zero or above. KEYS: the hash. ARGV: unit, the base that was
// read, the new one or empty, reports, and the name and token of a section.
var storedScript = goredis.NewScript(`
local held = redis.call('HMGET', KEYS[1], 'unit', 'base', 'at:' .. ARGV[5])
if held[1] ~= ARGV[1] then
  return
end
local reports = tonumber(ARGV[4])
if reports ~= 0 and redis.call('HINCRBY', KEYS[1], 'reports', -reports) < 0 then
  redis.call('HSET', KEYS[1], 'reports', '0')
end
if (held[2] or '') ~= ARGV[2] or ARGV[2] == '' and held[3] ~= ARGV[6] then
  return
end
if ARGV[3] == '' then
  redis.call('HDEL', KEYS[1], 'base')
else
  redis.call('HSET', KEYS[1], 'base', ARGV[3])
end
`)

// states reads and writes the reported states in Redis. It is safe for concurrent use.
type states struct {
	db     *redis.DB
	writer string // unique; with writes it forms the tokens of this instance
	writes atomic.Uint64
	reads  *groupcommit.Batcher[telematics.VehicleID, readState]
}

// readState is the result of reading one state.
type readState struct {
	redisState
	found bool
	err   error
}

func newStates(db *redis.DB, g *guard.Guard) *states {
	r := &states{db: db, writer: uuid.NewString() + ":"}
	r.reads = redis.NewBatcher(g, r.readEach)
	return r
}

// newBase returns the base of a snapshot with a version.
func (r *states) newBase(micros int64) base {
	return base(strconv.FormatInt(micros, 10) + ":" + r.newToken())
}

func (r *states) newToken() string { return r.writer + strconv.FormatUint(r.writes.Add(1), 36) }

// update tries to write the updates, in one round trip, and returns the outcome of each. Commands
// that after adds run last; the caller checks their errors.
func (r *states) update(ctx context.Context, updates []update, after ...func(goredis.Pipeliner)) ([]outcome, error) {
	calls := make([]redis.ScriptCall, len(updates))
	for i, u := range updates {
		args := append(
			make([]any, 0, 7+3*len(u.rows)), string(u.Unit), u.At.UnixMicro(), stateTTL.Milliseconds(),
			u.token, u.reports, string(u.base), flag(u.offline),
		)
		for place, row := range u.rows {
			args = append(args, telematics.Sections[place], u.held.token(place), row)
		}
		calls[i] = redis.ScriptCall{Keys: []string{stateKey(u.vehicle)}, Args: args}
	}
	outcomes := make([]outcome, len(updates))
	for i, reply := range r.db.RunScript(ctx, updateScript, calls, after...) {
		results, err := reply.Slice()
		var refused goredis.Error
		switch {
		case errors.Is(err, goredis.Nil):
			outcomes[i].conflict = true
		case err != nil && (unavailable.IsCause(err) || !errors.As(err, &refused)):
			return nil, unavailable.Wrap("write reported state", err)
		case err == nil && len(results) == 3:
			outcomes[i] = outcome{
				before: decodeSeen(fmt.Sprint(results[0])), complete: results[1] == int64(1), offline: results[2] == int64(1),
			}
		default:
			outcomes[i].err = cmp.Or(err, errUnexpectedReply)
		}
	}
	return outcomes, nil
}

// flag encodes a boolean for Redis.
func flag(on bool) string {
	if on {
		return "1"
	}
	return ""
}

// setOffline notes whether the units of vehicles are offline.
func (r *states) setOffline(ctx context.Context, offline map[telematics.VehicleID]bool) error {
	calls := make([]redis.ScriptCall, 0, len(offline))
	for id, is := range offline {
		calls = append(calls, redis.ScriptCall{Keys: []string{stateKey(id)}, Args: []any{flag(is)}})
	}
	return r.run(ctx, "note presence", offlineScript, calls)
}

// storedState is a state that was read from Redis and is in Postgres now.
type storedState struct {
	vehicle telematics.VehicleID
	read    redisState
	base    base // since then; empty: Postgres may have more
}

// setStored notes in Redis that states are in Postgres.
func (r *states) setStored(ctx context.Context, stored []storedState) error {
	calls := make([]redis.ScriptCall, len(stored))
	for i, s := range stored {
		section, token := "", ""
		for place, at := range s.read.tokens {
			if at != "" {
				section, token = telematics.Sections[place], at
			}
		}
		calls[i] = redis.ScriptCall{Keys: []string{stateKey(s.vehicle)}, Args: []any{
			string(s.read.unit), string(s.read.base), string(s.base), s.read.reports, section, token,
		}}
	}
	return r.run(ctx, "note stored state", storedScript, calls)
}

// run runs a script that returns nothing.
func (r *states) run(ctx context.Context, doing string, script *goredis.Script, calls []redis.ScriptCall) error {
	if len(calls) == 0 {
		return nil
	}
	var err error
	for _, reply := range r.db.RunScript(ctx, script, calls) {
		if failed := reply.Err(); err == nil && !errors.Is(failed, goredis.Nil) {
			err = failed
		}
	}
	return unavailable.Wrap(doing, err)
}

// read returns the states of vehicles; those that Redis does not have are absent.
func (r *states) read(ctx context.Context, vehicles []telematics.VehicleID) (map[telematics.VehicleID]redisState, error) {
	var all []readState
	var err error
	if len(vehicles) == 1 { // concurrent reads of single vehicles share a round trip
		all = make([]readState, 1)
		all[0], err = r.reads.Do(ctx, vehicles[0])
	} else {
		all, err = r.readEach(ctx, vehicles)
	}
	found := make(map[telematics.VehicleID]redisState, len(all))
	for i, s := range all {
		if err = cmp.Or(err, s.err); s.found {
			found[vehicles[i]] = s.redisState
		}
	}
	if err != nil {
		return nil, unavailable.Wrap("read reported state", err)
	}
	return found, nil
}

// readEach reads vehicles in one round trip.
func (r *states) readEach(ctx context.Context, vehicles []telematics.VehicleID) ([]readState, error) {
	replies := make([]*goredis.MapStringStringCmd, len(vehicles))
	pipe := r.db.Client.Pipeline()
	for i, v := range vehicles {
		replies[i] = pipe.HGetAll(ctx, stateKey(v))
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	read := make([]readState, len(vehicles))
	for i, reply := range replies {
		hash, err := reply.Result()
		read[i].err = err
		if len(hash) > 0 {
			read[i].redisState, read[i].found = decodeState(hash), true
		}
	}
	return read, nil
}

// decodeState leaves out a section that cannot be decoded: Postgres has it, and the next report
// replaces it.
func decodeState(hash map[string]string) redisState {
	s := redisState{
		unit: telematics.Unit(hash["unit"]), seen: decodeSeen(hash["seen"]), base: base(hash["base"]),
		tokens: make([]string, len(telematics.Sections)),
	}
	s.reports, _ = strconv.Atoi(hash["reports"])
	r := newSectionReader()
	defer r.close()
	for place, section := range telematics.Sections {
		s.tokens[place] = hash[tokenOf[place]]
		if row, ok := hash[section]; ok {
			_ = r.read(place, row)
		}
	}
	s.snapshot = r.snapshot
	return s
}

// token returns the token of a section, empty where there is none.
func (s redisState) token(place int) string {
	if s.tokens == nil {
		return ""
	}
	return s.tokens[place]
}

func decodeSeen(micros string) time.Time {
	n, err := strconv.ParseInt(micros, 10, 64)
	if err != nil {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}
