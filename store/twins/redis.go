package twins

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
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

// stateKey names the hash of a vehicle: unit, seen (microseconds since the epoch), and for each
// section its row and, under at:<section>, the token of the writer.
func stateKey(v telematics.VehicleID) string {
	return "motorpool:{vehicle-" + strconv.FormatInt(int64(v), 10) + "}:latest"
}

// redisState is the state of a vehicle in Redis.
type redisState struct {
	unit     telematics.Unit
	seen     time.Time
	snapshot telematics.Snapshot
	tokens   map[string]string // by section: that a writer must name to replace it
}

// update is what is to be written of a state: sections, each on the condition that it is still as
// it was when it was read.
type update struct {
	state    *state
	seen     time.Time
	sections []sectionUpdate
}

type sectionUpdate struct {
	name     string
	expected string // the token of what is replaced; empty: nothing
	row      []byte
	changes  int // of the section, in the row
}

// outcome is the result of an update.
type outcome struct {
	token     string              // of the sections that were written
	conflicts map[string]conflict // by section
	err       error
}

// conflict is a section that was not as expected, and how it is.
type conflict struct {
	token string // empty: there is none
	row   string
	own   bool // this instance wrote it, and the reply was lost
}

// updateScript is the compare-and-swap. It does not read the rows: which reading is newer is
// decided in one place, telematics.Join, by the writer. A hash that another unit wrote is dropped:
// the vehicle has another unit now.
//
// KEYS: the hash. ARGV: unit, seen, lifetime in ms, new token, and for each section its name, the
// expected token and the row. It returns for each section false where it was written, else its
// token and row.
var updateScript = goredis.NewScript(`
local key, unit, seen, ttl, token = KEYS[1], ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local fields = {'unit', 'seen'}
for i = 5, #ARGV, 3 do
  fields[#fields + 1] = 'at:' .. ARGV[i]
end
local held = redis.call('HMGET', key, unpack(fields))
if held[1] and held[1] ~= unit then
  redis.call('DEL', key)
  held = {}
end
local set, results = {'unit', unit}, {}
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
    results[n - 2] = false
  elseif current == '' then
    results[n - 2] = {'', ''}
  else
    results[n - 2] = {current, redis.call('HGET', key, ARGV[i])}
  end
end
redis.call('HSET', key, unpack(set))
redis.call('PEXPIRE', key, ttl)
return results
`)

// states is the reported states in Redis. It is safe for concurrent use.
type states struct {
	db     *redis.DB
	writer string // of this instance alone: with writes it names what this instance wrote
	writes atomic.Uint64
	reads  *groupcommit.Batcher[telematics.VehicleID, readState]
}

// readState is the result of reading one state.
type readState struct {
	redisState
	found bool
	err   error
}

func newStates(db *redis.DB) *states {
	r := &states{db: db, writer: uuid.NewString() + ":"}
	r.reads = redis.NewBatcher(r.readEach)
	return r
}

// update tries to write the updates, in one trip, and returns the outcome of each.
func (r *states) update(ctx context.Context, updates []update) ([]outcome, error) {
	outcomes := make([]outcome, len(updates))
	calls := make([]redis.ScriptCall, len(updates))
	for i, u := range updates {
		outcomes[i].token = r.writer + strconv.FormatUint(r.writes.Add(1), 36)
		args := append(make([]any, 0, 4+3*len(u.sections)), string(u.state.unit), u.seen.UnixMicro(), stateTTL.Milliseconds(), outcomes[i].token)
		for _, s := range u.sections {
			args = append(args, s.name, s.expected, s.row)
		}
		calls[i] = redis.ScriptCall{Keys: []string{stateKey(u.state.vehicle)}, Args: args}
	}
	replies, err := r.db.RunScript(ctx, updateScript, calls)
	if err != nil {
		return nil, unavailable.Wrap("write reported state", err)
	}
	for i, reply := range replies {
		results, err := reply.Slice()
		var refused goredis.Error
		if err != nil && (unavailable.IsCause(err) || !errors.As(err, &refused)) {
			return nil, unavailable.Wrap("write reported state", err)
		}
		outcomes[i].err = err
		outcomes[i].conflicts = r.conflicts(updates[i].sections, results)
	}
	return outcomes, nil
}

func (r *states) conflicts(sections []sectionUpdate, results []any) map[string]conflict {
	conflicts := map[string]conflict{}
	for i := range min(len(sections), len(results)) {
		pair, ok := results[i].([]any)
		if !ok || len(pair) != 2 {
			continue // written
		}
		token, _ := pair[0].(string)
		row, _ := pair[1].(string)
		conflicts[sections[i].name] = conflict{token: token, row: row, own: strings.HasPrefix(token, r.writer)}
	}
	return conflicts
}

// read returns the states of vehicles; those that Redis does not have are absent.
func (r *states) read(ctx context.Context, vehicles []telematics.VehicleID) (map[telematics.VehicleID]redisState, error) {
	var all []readState
	var err error
	if len(vehicles) == 1 { // concurrent reads of single vehicles share a trip
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

// readEach reads vehicles in one trip.
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

// decodeState leaves out a section that cannot be read: Postgres has it, and the next report
// replaces it.
func decodeState(hash map[string]string) redisState {
	s := redisState{unit: telematics.Unit(hash["unit"]), snapshot: telematics.Snapshot{}, tokens: map[string]string{}}
	if micros, err := strconv.ParseInt(hash["seen"], 10, 64); err == nil {
		s.seen = time.UnixMicro(micros).UTC()
	}
	for name, row := range hash {
		if section, ok := strings.CutPrefix(name, "at:"); ok {
			s.tokens[section] = row
		} else if name != "unit" && name != "seen" {
			readings, _ := decodeSection(name, row)
			maps.Copy(s.snapshot, readings)
		}
	}
	return s
}

// sectionRow is the JSON of a section of a snapshot in Redis. Most of its readings are of
// one report, so their time stands once. Values are decoded by their field.
type sectionRow[V any] struct {
	AtMS   int64            `json:"at"`              // vehicle time of the newest readings
	Values map[string]V     `json:"v"`               // by the field's name within the section
	Older  map[string]int64 `json:"older,omitempty"` // the times of the others
	Once   map[string]bool  `json:"once,omitempty"`  // those of null that had a value before
}

// fieldsOf lists the fields of each section, in a fixed order, and nameOf the name of each
// within its section, which is empty for a section that is itself a field.
var (
	fieldsOf = map[string][]telematics.Field{}
	nameOf   = map[telematics.Field]string{}
)

func init() {
	for _, field := range telematics.Fields {
		section := field.Section()
		fieldsOf[section] = append(fieldsOf[section], field)
		nameOf[field] = strings.TrimPrefix(strings.TrimPrefix(string(field), section), ".")
	}
}

func encodeSection(section string, s telematics.Snapshot) ([]byte, error) {
	var newest time.Time
	for _, field := range fieldsOf[section] {
		if r, ok := s[field]; ok && r.At.After(newest) {
			newest = r.At
		}
	}
	row := sectionRow[any]{AtMS: newest.UnixMilli(), Values: make(map[string]any, len(fieldsOf[section])), Older: map[string]int64{}, Once: map[string]bool{}}
	for _, field := range fieldsOf[section] {
		reading, ok := s[field]
		if !ok {
			continue
		}
		name := nameOf[field]
		row.Values[name] = reading.Value
		if !reading.At.Equal(newest) {
			row.Older[name] = reading.At.UnixMilli()
		}
		if reading.Once {
			row.Once[name] = true
		}
	}
	text, err := json.Marshal(row)
	if err != nil {
		return nil, fmt.Errorf("encode section %q: %w", section, err)
	}
	return text, nil
}

// decodeSection leaves out fields that this version of the program does not have.
func decodeSection(section string, text string) (telematics.Snapshot, error) {
	var row sectionRow[json.RawMessage]
	if err := json.Unmarshal([]byte(text), &row); err != nil {
		return nil, fmt.Errorf("decode section %s: %w", section, err)
	}
	s := make(telematics.Snapshot, len(row.Values))
	for name, raw := range row.Values {
		field := telematics.Field(section)
		if name != "" {
			field = telematics.Field(section + "." + name)
		}
		at, ok := row.Older[name]
		if !ok {
			at = row.AtMS
		}
		if v, err := telematics.ParseValue(field, raw); err == nil {
			s[field] = telematics.Reading{Value: v, At: time.UnixMilli(at).UTC(), Once: row.Once[name]}
		}
	}
	return s, nil
}
