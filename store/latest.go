package store

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	goredis "github.com/redis/go-redis/v9"

	"motorpool/store/groupcommit"
	"motorpool/store/redis"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// latestFor is how long the latest state of a silent vehicle stays in Redis. Postgres has
// it for good.
const latestFor = time.Hour

// latestKey names the hash of a vehicle: unit, seen (microseconds since the epoch), and for each
// section its row and, under at:<section>, the token of whoever wrote it.
func latestKey(v telematics.VehicleID) string {
	return "motorpool:{vehicle-" + strconv.FormatInt(int64(v), 10) + "}:latest"
}

// latest is what Redis holds of a vehicle.
type latest struct {
	unit     telematics.Unit
	seen     time.Time
	snapshot telematics.Snapshot
	tokens   map[string]string // by section: that a writer must name to replace it
}

// offer is what is to be written of a vehicle: sections, each on the condition that it is
// still as it was when it was read.
type offer struct {
	vehicle  telematics.VehicleID
	unit     telematics.Unit
	seen     time.Time
	sections []sectionOffer
}

type sectionOffer struct {
	name     string
	expected string // the token of what is replaced; empty: nothing
	row      []byte
}

// refusal is a section that was not as expected, and how it is.
type refusal struct {
	token string // empty: there is none
	row   string
	ours  bool // this instance wrote it, and the answer was lost
}

// offered is the fate of an offer.
type offered struct {
	token   string             // of the sections that were taken
	refused map[string]refusal // by section
	err     error
}

// offerScript is the compare-and-set. It knows nothing of the rows: what is newer is
// decided in one place, telematics.Join, by whoever offers. A hash that another unit wrote
// is not of this vehicle any more.
//
// KEYS: the hash. ARGV: unit, seen, lifetime in ms, new token, and for each section its name, the expected
// token and the row. It returns for each section false where it was taken, else its token and row.
var offerScript = goredis.NewScript(`
local key, unit, seen, ttl, token = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ask = {'unit', 'seen'}
for i = 5, #ARGV, 3 do
  ask[#ask + 1] = 'at:' .. ARGV[i]
end
local held = redis.call('HMGET', key, unpack(ask))
if held[1] and held[1] ~= unit then
  redis.call('DEL', key)
  held = {}
end
local set, verdicts = {'unit', unit}, {}
if not held[2] or tonumber(held[2]) < tonumber(seen) then
  set[#set + 1] = 'seen'
  set[#set + 1] = seen
end
for i = 5, #ARGV, 3 do
  local n = (i - 2) / 3 + 2
  local current = held[n] or ''
  if current == ARGV[i + 1] then
    set[#set + 1] = ARGV[i]
    set[#set + 1] = ARGV[i + 2]
    set[#set + 1] = 'at:' .. ARGV[i]
    set[#set + 1] = token
    verdicts[n - 2] = false
  elseif current == '' then
    verdicts[n - 2] = {'', ''}
  else
    verdicts[n - 2] = {current, redis.call('HGET', key, ARGV[i])}
  end
end
redis.call('HSET', key, unpack(set))
redis.call('PEXPIRE', key, ttl)
return verdicts
`)

// latestStates is the latest state of vehicles in Redis. It is safe for concurrent use.
type latestStates struct {
	db       *redis.DB
	writer   string // of this instance alone: with writings it names what this instance wrote
	writings atomic.Uint64
	reads    *groupcommit.Batcher[telematics.VehicleID, readLatest]
}

func newLatestStates(db *redis.DB) *latestStates {
	r := &latestStates{db: db, writer: uuid.NewString() + ":"}
	r.reads = redis.NewBatcher(r.readEach)
	return r
}

// offer tries to write what is offered, in one trip, and returns the fate of each offer.
func (r *latestStates) offer(ctx context.Context, offers []offer) ([]offered, error) {
	fates := make([]offered, len(offers))
	calls := make([]redis.ScriptCall, len(offers))
	for i, o := range offers {
		fates[i].token = r.writer + strconv.FormatUint(r.writings.Add(1), 36)
		args := append(make([]any, 0, 4+3*len(o.sections)), string(o.unit), o.seen.UnixMicro(), latestFor.Milliseconds(), fates[i].token)
		for _, s := range o.sections {
			args = append(args, s.name, s.expected, s.row)
		}
		calls[i] = redis.ScriptCall{Keys: []string{latestKey(o.vehicle)}, Args: args}
	}
	replies, err := r.db.RunScript(ctx, offerScript, calls)
	if err != nil {
		return nil, unavailable.Wrap("offer the latest state", err)
	}
	for i, reply := range replies {
		verdicts, err := reply.Slice()
		if err != nil && (unavailable.IsCause(err) || !isReply(err)) {
			return nil, unavailable.Wrap("offer the latest state", err)
		}
		if fates[i].err = err; err == nil {
			fates[i].refused = r.refusals(offers[i].sections, verdicts)
		}
	}
	return fates, nil
}

// isReply reports whether Redis itself said what is wrong.
func isReply(err error) bool {
	var reply goredis.Error
	return errors.As(err, &reply)
}

func (r *latestStates) refusals(sections []sectionOffer, verdicts []any) map[string]refusal {
	var refused map[string]refusal
	for i, s := range sections {
		if i >= len(verdicts) {
			break
		}
		pair, ok := verdicts[i].([]any)
		if !ok || len(pair) != 2 {
			continue // taken
		}
		if refused == nil {
			refused = map[string]refusal{}
		}
		token, _ := pair[0].(string)
		row, _ := pair[1].(string)
		refused[s.name] = refusal{token: token, row: row, ours: strings.HasPrefix(token, r.writer)}
	}
	return refused
}

// readLatest is what a trip brought of one vehicle.
type readLatest struct {
	latest
	found bool
	err   error
}

// latestOf returns what Redis holds of vehicles; those of which it holds nothing are absent.
func (r *latestStates) latestOf(ctx context.Context, vehicles []telematics.VehicleID) (map[telematics.VehicleID]latest, error) {
	var all []readLatest
	var err error
	if len(vehicles) == 1 { // as commands do, many at once
		all = make([]readLatest, 1)
		all[0], err = r.reads.Do(ctx, vehicles[0])
	} else {
		all, err = r.readEach(ctx, vehicles)
	}
	found := make(map[telematics.VehicleID]latest, len(all))
	for i, l := range all {
		if err = cmp.Or(err, l.err); l.found {
			found[vehicles[i]] = l.latest
		}
	}
	if err != nil {
		return nil, unavailable.Wrap("read the latest state", err)
	}
	return found, nil
}

// readEach reads vehicles in one trip.
func (r *latestStates) readEach(ctx context.Context, vehicles []telematics.VehicleID) ([]readLatest, error) {
	replies := make([]*goredis.MapStringStringCmd, len(vehicles))
	pipe := r.db.Client.Pipeline()
	for i, v := range vehicles {
		replies[i] = pipe.HGetAll(ctx, latestKey(v))
	}
	_, _ = pipe.Exec(ctx) // each reply has its own error
	read := make([]readLatest, len(vehicles))
	for i, reply := range replies {
		hash, err := reply.Result()
		read[i].err = err
		if len(hash) > 0 {
			read[i].latest, read[i].found = decodeLatest(hash), true
		}
	}
	return read, nil
}

// decodeLatest leaves out a section that cannot be read: Postgres has it, and the next report replaces it.
func decodeLatest(hash map[string]string) latest {
	l := latest{unit: telematics.Unit(hash["unit"]), snapshot: telematics.Snapshot{}, tokens: map[string]string{}}
	if micros, err := strconv.ParseInt(hash["seen"], 10, 64); err == nil {
		l.seen = time.UnixMicro(micros).UTC()
	}
	for name, row := range hash {
		section, ok := strings.CutPrefix(name, "at:")
		if ok {
			l.tokens[section] = row
			continue
		}
		if name == "unit" || name == "seen" {
			continue
		}
		readings, err := decodeSection(name, row)
		if err != nil {
			continue
		}
		for field, reading := range readings {
			l.snapshot[field] = reading
		}
	}
	return l
}
