package twins

import (
	"context"
	"encoding/json"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// sectionsIn returns the sections with readings in a snapshot.
func sectionsIn(s telematics.Snapshot) (places []int) {
	for place, fields := range fieldsOf {
		if slices.ContainsFunc(fields, s.Has) {
			places = append(places, place)
		}
	}
	return places
}

// withoutRun opens the twins of one vehicle. The test calls their flushes.
func withoutRun(t *testing.T, redis string) (twins *Twins, id telematics.VehicleID, unit telematics.Unit) {
	t.Helper()
	twins = newTwins(open(t, storetest.NewDatabase(t)), openRedis(t, redis), 0)
	id, unit = storetest.AddVehicle(t, twins.stored.DB, 1)
	return twins, id, unit
}

// flushedToPostgres writes the states that are queued for Redis to Postgres, as while Redis does
// not answer.
func flushedToPostgres(ctx context.Context, twins *Twins) {
	for _, p := range twins.queue.take() {
		twins.queue.putBack(p)
	}
	twins.flushPostgres(ctx, 1, nil)
}

// afterUpdate is a hook of Redis that loses the replies of pipelines with a script.
type afterUpdate struct {
	afterRead
	on bool
}

func (h *afterUpdate) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		err := next(ctx, cmds)
		if h.on && cmds[0].Name() == "evalsha" {
			err = io.ErrUnexpectedEOF
			for _, cmd := range cmds {
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func TestFlushRedis_PublishesAStoredChangeWhoseReplyWasLost(t *testing.T) {
	t.Parallel()
	for name, redis := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			twins, id, unit := withoutRun(t, redis)
			var published publishedChanges
			start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
			observed(t, twins, unit, statusAt(start, 1))
			twins.flushRedis(t.Context(), published.publish)
			published.take()

			observed(t, twins, unit, statusAt(start, 2))
			breaks := &afterUpdate{}
			twins.redis.db.Client.AddHook(breaks)
			if breaks.on = true; twins.flushRedis(t.Context(), published.publish) {
				t.Error("the flush succeeded without a reply")
			}
			breaks.on = false
			twins.flushRedis(t.Context(), published.publish)
			changes := published.take()
			if len(changes) != 1 || changes[0].Vehicle != id || changes[0].Fields.Of(telematics.MileageKm).Value != 2.0 {
				t.Errorf("published %+v, want the vehicle's mileage", changes)
			}
			twins.flushRedis(t.Context(), published.publish)
			if again := published.take(); len(again) > 0 || twins.queue.size() > 0 {
				t.Errorf("published again: %+v", again)
			}
		})
	}
}

func TestFlushRedis_RetriesWhereRedisIsFull(t *testing.T) {
	t.Parallel()
	twins, id, unit := withoutRun(t, storetest.StartRedis(t).URL())
	var published publishedChanges
	for _, limit := range []string{"1", "0"} { // bytes; none
		require.NoError(t, twins.redis.db.Client.ConfigSet(t.Context(), "maxmemory", limit).Err())
		if limit == "1" {
			observed(t, twins, unit, statusAt(time.Now().Truncate(time.Millisecond), 7))
		}
		assert.Equal(t, twins.flushRedis(t.Context(), published.publish), (limit == "0"), "with a maxmemory of %s: flushed", limit)
	}
	if changes := published.take(); len(changes) != 1 || changes[0].Vehicle != id {
		t.Errorf("published %+v, want one change of the vehicle", changes)
	}
}

func TestFlushRedis_LostStateIsNoticedOnceAndWrittenCompletely(t *testing.T) {
	twins, id, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for n := range 2 { // so soon after each other, they keep the state cached
		observed(t, twins, unit, statusAt(start.Add(time.Duration(n)*time.Second), n))
		twins.flushRedis(t.Context(), nil)
	}
	// As after an hour without reports.
	require.NoError(t, twins.redis.db.Client.FlushDB(t.Context()).Err())
	for range 3 {
		_, err := twins.Twin(t.Context(), id)
		require.NoError(t, err)
	}
	if lost := twins.queue.queued[id]; lost == nil || lost.observed != 1 {
		t.Errorf("queued after three reads: %+v, want the state once", lost)
	}
	observed(t, twins, unit, &telematics.Report{At: start.Add(time.Minute), Values: map[telematics.Field]any{telematics.MileageKm: 2.0}})
	twins.flushRedis(t.Context(), nil)
	held, err := twins.redis.read(t.Context(), []telematics.VehicleID{id})
	require.NoError(t, err)
	if got, want := sectionsIn(held[id].snapshot), []int{0, 1, 4}; !slices.Equal(got, want) {
		t.Errorf("redis has the sections %v of %v, want %v", got, telematics.Sections, want)
	}
}

// Redis was emptied, and another instance has written a part of the state since.
func TestFlushRedis_StateLostInPartIsWrittenCompletely(t *testing.T) {
	redis := storetest.StartMiniredis(t).URL()
	here, id, unit := withoutRun(t, redis)
	there := newTwins(&record{Fleet: here.vehicles, stored: here.stored}, openRedis(t, redis), 0)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for n := range 2 { // so soon after each other, they keep the state
		observed(t, here, unit, statusAt(start, n))
		here.flushRedis(t.Context(), nil)
	}
	require.NoError(t, here.redis.db.Client.FlushDB(t.Context()).Err())
	for n, twins := range []*Twins{there, here} {
		km := map[telematics.Field]any{telematics.MileageKm: float64(5 + n)}
		observed(t, twins, unit, &telematics.Report{At: start.Add(time.Duration(n+1) * time.Minute), Values: km})
		if !twins.flushRedis(t.Context(), nil) || twins.queue.size() > 0 {
			t.Fatal("not flushed")
		}
	}
	held, err := there.redis.read(t.Context(), []telematics.VehicleID{id})
	if got, want := sectionsIn(held[id].snapshot), []int{0, 1, 4}; err != nil || !slices.Equal(got, want) {
		t.Errorf("redis has the sections %v of %v, %v; want %v", got, telematics.Sections, err, want)
	}
}

func TestFlushRedis_PublishesToThePresentAgency(t *testing.T) {
	t.Parallel()
	twins, _, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	// As while Redis is unavailable.
	observed(t, twins, unit, statusAt(time.Now().Truncate(time.Millisecond), 7))
	for _, change := range []string{`insert into agencies (id, code, name) values (2, 'HAM', 'Alster Mobility')`,
		`update vehicles set agency_id = 2`} {
		storetest.Exec(t, twins.stored.Pool, change)
	}
	twins.owners.cached.Purge() // after ownerTTL
	var published publishedChanges
	twins.flushRedis(t.Context(), published.publish)
	if changes := published.take(); len(changes) != 1 || changes[0].Agency != 2 {
		t.Errorf("published %+v, want one change of agency 2", changes)
	}
}

func TestFlushRedis_RetriesWhereRedisIsUnavailable(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t)
	twins, id, first := withoutRun(t, server.URL())
	units := []telematics.Unit{first}
	for id := range telematics.VehicleID(2) {
		_, unit := storetest.AddVehicle(t, twins.stored.DB, id+2)
		units = append(units, unit)
	}
	var published publishedChanges
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	if err := server.Kill(); err != nil { // before any state of the vehicles was read
		t.Fatal(err)
	}
	for n := range 2 {
		for _, unit := range units {
			observed(t, twins, unit, statusAt(start, n))
		}
		if twins.flushRedis(t.Context(), published.publish) {
			t.Error("a flush succeeded while redis was down")
		}
		twin, err := twins.Twin(t.Context(), id)
		assert.Equal(t, mileage(t, twin, err), float64(n), "while redis is unavailable, the mileage reads")
	}
	require.NoError(t, server.Restart())
	storetest.Eventually(t, "redis is available", func() bool { return twins.redis.db.Ready(t.Context()) == nil })
	if !twins.flushRedis(t.Context(), published.publish) {
		t.Error("the flush failed although redis is available")
	}
	assert.Equal(t, len(published.take()), len(units), "vehicles were published")
	held, err := twins.redis.read(t.Context(), []telematics.VehicleID{id})
	require.NoError(t, err)
	assert.Equal(t, *held[id].snapshot.Number(telematics.MileageKm), 1, "the mileage that redis has")
}

func TestFlushRedis_OneOfTwoInstancesPublishesAChangeThatPostgresHasAlready(t *testing.T) {
	start := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	for name, test := range map[string]struct {
		before []*telematics.Report // reports that Redis has
		order  func(here, there *Twins) []*Twins
	}{
		"no report before, the writer flushes first": {nil, func(here, there *Twins) []*Twins { return []*Twins{here, there} }},
		"no report before, the writer flushes last":  {nil, func(here, there *Twins) []*Twins { return []*Twins{there, here} }},
		"a report before, the writer flushes first": {[]*telematics.Report{statusAt(start, 5)},
			func(here, there *Twins) []*Twins { return []*Twins{here, there} }},
		"a report before, the writer flushes last": {[]*telematics.Report{statusAt(start, 5)},
			func(here, there *Twins) []*Twins { return []*Twins{there, here} }},
		"the writer ends before the flush to Redis": {nil, func(_, there *Twins) []*Twins { return []*Twins{there} }},
	} {
		t.Run(name, func(t *testing.T) {
			redis := storetest.StartMiniredis(t).URL()
			here, id, unit := withoutRun(t, redis)
			fresh := func() *Twins {
				return newTwins(&record{Fleet: here.vehicles, stored: here.stored}, openRedis(t, redis), 0)
			}
			var published publishedChanges
			for _, report := range test.before {
				earlier := fresh()
				observed(t, earlier, unit, report)
				flushedToPostgres(t.Context(), earlier)
				earlier.flushRedis(t.Context(), nil)
			}
			there := fresh()
			observed(t, here, unit, statusAt(start.Add(time.Second), 7))
			flushedToPostgres(t.Context(), here)
			observed(t, there, unit, statusAt(start.Add(2*time.Second), 7))
			for _, twins := range test.order(here, there) {
				twins.flushRedis(t.Context(), published.publish)
			}
			changes := published.take()
			if len(changes) != 1 || changes[0].Vehicle != id || changes[0].Fields.Of(telematics.MileageKm).Value != 7.0 {
				t.Errorf("published %+v, want the vehicle's mileage once", changes)
			}
		})
	}
}

func TestFlushRedis_StateLostByRedisIsNotPublishedAgain(t *testing.T) {
	redis := storetest.StartMiniredis(t).URL()
	here, _, unit := withoutRun(t, redis)
	start := time.Now().Add(-2 * stateTTL).Truncate(time.Millisecond)
	observed(t, here, unit, statusAt(start, 7))
	flushedToPostgres(t.Context(), here)
	here.flushRedis(t.Context(), nil)
	// As after an hour without reports.
	require.NoError(t, here.redis.db.Client.FlushDB(t.Context()).Err())
	there := newTwins(&record{Fleet: here.vehicles, stored: here.stored}, openRedis(t, redis), 0)
	observed(t, there, unit, statusAt(time.Now().Truncate(time.Millisecond), 7))
	var published publishedChanges
	there.flushRedis(t.Context(), published.publish)
	for _, change := range published.take() {
		if change.Fields.Has(telematics.MileageKm) {
			t.Errorf("published again: %+v", change)
		}
	}
}

func TestFlushPostgres_LeavesRemainingStatesToTheLastFlush(t *testing.T) {
	twins, id, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	start := time.Now().Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(start, 7))
	for _, p := range twins.queue.take() {
		twins.queue.refuse(p)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	twins.flushPostgres(ended, postgresShare, nil)
	assert.Equal(t, len(twins.queue.owed()), 1, "vehicles are not flushed to postgres")
	twins.flushPostgres(t.Context(), 1, nil)
	kept, err := twins.vehicles.Twin(t.Context(), id)
	if err != nil || kept.Snapshot.Of(telematics.MileageKm).Value != 7.0 || twins.queue.size() != 0 {
		t.Errorf("postgres has %v, %v; want mileage 7", kept.Snapshot, err)
	}
}

func TestRedis_ASectionIsReadAsItWasWritten(t *testing.T) {
	at := time.UnixMilli(1767348000250).UTC()
	earlier := at.Add(-time.Minute)
	for name, s := range map[string]telematics.Snapshot{
		"of one report": {telematics.SpeedKmh: {Value: 48.5, At: at}, telematics.IsLocked: {Value: true, At: at}},
		"of several": {
			telematics.SpeedKmh: {Value: 0.0, At: at}, telematics.MileageKm: {Value: 1e-7, At: earlier},
			telematics.KeyStatus: {At: at, Once: true}, telematics.Gear: {Value: "D", At: earlier}, telematics.DoorTrunk: {Value: "open",
				At: earlier.Add(time.Millisecond)},
		},
		"location": {telematics.Latitude: {Value: -48.137154321, At: at}, telematics.LocatedAt: {Value: earlier, At: at}},
		"lists": {telematics.DTCs: {Value: []string{"P0420"}, At: at}, telematics.WarningLamps: {Value: []string{}, At: at},
			telematics.ServiceDueKm: {Value: -200.0, At: at}},
		"texts": {telematics.Firmware: {Value: "4.2 \"β\" \\ <\u2028>", At: at}},
		"raw with others": {telematics.OEMData: {Value: map[string]any{"a": 1e300, "": []any{nil, "x"}}, At: at},
			telematics.RawDTCs: {Value: []string{"0x1"}, At: earlier}},
		"only nulls": {telematics.OEMData: {At: at}},
		"without times": {telematics.SpeedKmh: {Value: 48.5, At: at, Undated: true},
			telematics.Gear: {Value: "D", At: earlier, Undated: true}, telematics.IsLocked: {Value: true, At: at}},
		"raw without": {telematics.RawCharging: {Value: "plugged_in", At: at}},
	} {
		t.Run(name, func(t *testing.T) {
			sections := sectionsIn(s)
			if len(sections) != 1 {
				t.Fatalf("sections %v, want one", sections)
			}
			row, err := encodeSection(sections[0], s)
			if err != nil || !json.Valid(row) {
				t.Fatalf("%s: %v", row, err)
			}
			got := telematics.NewSnapshot()
			err = decodeSection(got, sections[0], string(row))
			if err != nil || !reflect.DeepEqual(got, s.Clone()) {
				t.Errorf("%s\n got %v, %v\nwant %v", row, got, err, s)
			}
		})
	}
}

func TestDecodeSection_ReadsWhatOtherVersionsWrite(t *testing.T) {
	at := time.UnixMilli(1_700_000_000_000).UTC()
	want := telematics.Snapshot{
		telematics.SpeedKmh: {
			Value: 48.5, At: at,
		},
		telematics.Gear: {Value: "D", At: at.Add(-time.Second)}, telematics.KeyStatus: {At: at, Once: true},
	}
	const telemetry = 1
	for name, text := range map[string]string{
		"in this order": `{"at":1700000000000,"v":{"gear":"D","key_status":null,"speed_kmh":48.5},
			"older":{"gear":1699999999000},"once":{"key_status":true}}`,
		"in another": `{"once":{"key_status":true},"older":{"gear":1699999999000},
			"v":{"speed_kmh":48.5,"key_status":null,"gear":"D"},"at":1700000000000}`,
		"with more": `{"at":1700000000000,"new":{"a":[1]},
			"v":{"gear":"D","new":{"v":1},"key_status":null,"speed_kmh":48.5,"sunroof":"ajar"},
			"older":{"gear":1699999999000,"new":1},"once":{"key_status":true,"new":true}}`,
		"spaced": ` { "at" : 1700000000000 , "v" : { "gear" : "D" , "key_status" : null , "speed_kmh" : 48.5 } ,
			"older" : { "gear" : 1699999999000 } , "once" : { "key_status" : true } } `,
		"with a time 0": `{"at":0,"at":1700000000000,"v":{"gear":"D","key_status":null,"speed_kmh":48.5},
			"older":{"gear":1699999999000},"once":{"key_status":true}}`,
		"with no members": ``, "a list": `[]`, "a text": `"at"`, "not JSON": `{"at":1700000000000,"v":{"gear":"D"`,
		"a time that is a text":  `{"v":{"gear":"D"},"at":"now"}`,
		"values that are a list": `{"at":1700000000000,"v":["gear"]}`,
	} {
		got := telematics.NewSnapshot()
		err := decodeSection(got, telemetry, text)
		if wantErr := !strings.Contains(text, "48.5"); (err != nil) != wantErr || wantErr && !got.Empty() || !wantErr &&
			!reflect.DeepEqual(got, want.Clone()) {
			t.Errorf("%s: %s\n got %v, %v\nwant %v", name, text, got, err, want)
		}
	}
}

func TestFlushRedis_KeepsTheTimeOfAValueThatIsRepeatedWithoutOne(t *testing.T) {
	twins, id, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	first := time.Now().Truncate(time.Millisecond).UTC()
	for n := range 3 {
		report := statusAt(first, 7)
		report.At, report.Undated = first.Add(time.Duration(n)*time.Second), true
		observed(t, twins, unit, report)
		if n != 1 { // once before the state is loaded, and once after
			twins.flushRedis(t.Context(), nil)
		}
		held, err := twins.redis.read(t.Context(), []telematics.VehicleID{id})
		want := telematics.Reading{Value: 7.0, At: first, Undated: true}
		if got := held[id].snapshot[telematics.MileageKm]; err != nil || got != want {
			t.Errorf("after %d reports redis has %v, %v, want %v", n+1, got, err, want)
		}
	}
}

// Instances that record the same state as stored twice, or one from before Redis was emptied, must
// not prevent it from being recorded again.
func TestSetStored_CountOfReportsIsNeverNegative(t *testing.T) {
	for name, address := range storetest.BothRedis(t) {
		ctx, r := t.Context(), newStates(openRedis(t, address), nil)
		for _, held := range []string{"3", "-5"} {
			require.NoError(t, r.db.Client.HSet(ctx, stateKey(1), "unit", "u", "reports", held).Err())
			for range 3 {
				found, err := r.read(ctx, []telematics.VehicleID{1})
				require.NoError(t, err)
				read := found[1]
				read.reports = max(read.reports, 3) // as another instance has read it
				if held == "-5" {
					read.reports = -5 // as an earlier version left it
				}
				assert.NoError(t, r.setStored(ctx, []storedState{{vehicle: 1, read: read}}), "%s, from %s reports", name, held)
				if n, err := r.db.Client.HGet(ctx, stateKey(1), "reports").Int(); n < 0 || err != nil {
					t.Errorf("%s, from %s reports: %d reports, %v; want none negative", name, held, n, err)
				}
				if held == "-5" {
					break
				}
			}
		}
	}
}

// decodeSection adds a section to a snapshot, all of it or, with an error, nothing.
func decodeSection(s telematics.Snapshot, section int, text string) error {
	r := newSectionReader()
	defer r.close()
	err := r.read(section, text)
	s.Keep(r.snapshot.All())
	return err
}
