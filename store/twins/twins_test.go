package twins

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/groupcommit"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// twinsAt opens an instance's twins, which flush until the test ends.
func twinsAt(t *testing.T, database, redis string) *Twins {
	t.Helper()
	twins := newTwins(open(t, database), openRedis(t, redis), 50*time.Millisecond)
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	return twins
}

// publishedChanges collects published changes.
type publishedChanges struct {
	mu   sync.Mutex
	list []telematics.Change
}

func (c *publishedChanges) publish(changes []telematics.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, changes...)
}

func (c *publishedChanges) take() []telematics.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

func TestTwins_KeepTheContract(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		redis  string
		stored bool // read what the state interval has brought into Postgres, and nothing else
	}{
		"miniredis":             {redis: storetest.StartMiniredis(t).URL()},
		"redis":                 {redis: storetest.Redis(t)},
		"redis, after flushing": {storetest.Redis(t), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var published publishedChanges
			database := storetest.NewDatabase(t)
			var instances []*Twins
			for range 2 {
				twins := newTwins(open(t, database), openRedis(t, c.redis), 50*time.Millisecond)
				storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, published.publish) })
				instances = append(instances, twins)
			}
			here, there := instances[0], instances[1]
			read := there.Twin
			if c.stored {
				read = there.vehicles.Twin
			}
			add := storetest.Vehicles(t, here.stored.DB)
			settled := func() {
				storetest.Eventually(t, "both instances have flushed", func() bool { return here.unwritten()+there.unwritten() == 0 })
			}
			brokertest.TwinsContract(t, func(t *testing.T) brokertest.TwinRecord {
				return brokertest.TwinRecord{
					Here: here, There: there, Vehicle: add,
					Published: func() []telematics.Change { settled(); return published.take() },
					Twin: func(id telematics.VehicleID) telematics.Twin {
						settled()
						twin, err := read(context.Background(), id)
						require.NoError(t, err)
						return twin
					},
				}
			})
		})
	}
}

// statusAt returns a report with values in a few sections; n is the mileage.
func statusAt(at time.Time, n int) *telematics.Report {
	return &telematics.Report{At: at.Add(time.Duration(n) * time.Second), Values: map[telematics.Field]any{
		telematics.Latitude: float64(n % 90), telematics.Longitude: float64(n % 90),
		telematics.MileageKm: float64(n), telematics.OEMData: map[string]any{"n": float64(n)},
	}}
}

func observed(t *testing.T, twins *Twins, unit telematics.Unit, report *telematics.Report) delivery.Seen {
	t.Helper()
	seen, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: report}})
	require.NoError(t, err)
	return seen
}

// awaited stores a report, and waits until all instances can read it.
func awaited(t *testing.T, twins *Twins, unit telematics.Unit, report *telematics.Report) (delivery.Seen, error) {
	t.Helper()
	return twins.Report(delivery.Observation{Unit: unit, At: time.Now(), Report: report})(t.Context())
}

func mileage(t *testing.T, twin telematics.Twin, err error) float64 {
	t.Helper()
	require.NoError(t, err)
	if km := twin.Snapshot.Number(telematics.MileageKm); km != nil {
		return *km
	}
	return -1
}

func TestTwins_EmptiedRedisLosesNoReport(t *testing.T) {
	t.Parallel()
	database, redis := storetest.NewDatabase(t), storetest.Redis(t)
	here, there := twinsAt(t, database, redis), twinsAt(t, database, redis)
	id, unit := storetest.AddVehicle(t, here.stored.DB, 1)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for n := range 20 {
		twins := []*Twins{here, there}[n%2]
		observed(t, twins, unit, statusAt(start, n))
		if n%5 == 4 {
			require.NoError(t, twins.redis.db.Client.FlushDB(t.Context()).Err())
		}
		twin, err := twins.Twin(t.Context(), id)
		if got := mileage(t, twin, err); got != float64(n) {
			t.Fatalf("report %d: the instance that received it reads %v", n, got)
		}
		storetest.Eventually(t, "the other instance reads it, too", func() bool {
			twin, err := []*Twins{here, there}[1-n%2].Twin(t.Context(), id)
			return mileage(t, twin, err) == float64(n)
		})
	}
	storetest.Eventually(t, "postgres has all reports", func() bool {
		twin, err := here.vehicles.Twin(t.Context(), id)
		return mileage(t, twin, err) == 19
	})
	storetest.Eventually(t, "all states are flushed", func() bool { return here.unwritten()+there.unwritten() == 0 })
}

func TestObserve_IsWrittenWhenPostgresIsAvailableAgain(t *testing.T) {
	server, postgres := ownServer(t, time.Second)
	twins := newTwins(postgres, openRedis(t, storetest.StartMiniredis(t).URL()), 50*time.Millisecond)
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(start, 1))
	for name, trouble := range map[string][2]func() error{"killed": {server.Kill, server.Restart},
		"frozen": {server.Pause, server.Resume}} {
		require.NoError(t, trouble[0]())
		for n := range 5 {
			observed(t, twins, unit, statusAt(start, 10*len(name)+n))
		}
		require.NoError(t, trouble[1]())
		storetest.Eventually(t, name+": postgres has the report of meanwhile", func() bool {
			twin, err := postgres.Twin(t.Context(), id)
			return err == nil && mileage(t, twin, err) == float64(10*len(name)+4)
		})
	}
}

func TestReport_IsSeenByEveryInstanceWhenTheWaitEnds(t *testing.T) {
	database, redis := storetest.NewDatabase(t), storetest.StartMiniredis(t).URL()
	postgres := open(t, database)
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	here := newTwins(postgres, openRedis(t, redis), time.Hour)
	there := newTwins(open(t, database), openRedis(t, redis), time.Hour)
	storetest.Run(t, func(ctx context.Context) error { return here.Run(ctx, nil) })
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for n := range 20 {
		if _, cached := here.owners.find(unit); cached != (n > 0) {
			t.Fatalf("report %d: owner cached %v, want %v", n, cached, n > 0)
		}
		_, err := awaited(t, here, unit, statusAt(start, n))
		require.NoError(t, err)
		twin, err := there.Twin(t.Context(), id)
		if got := mileage(t, twin, err); got != float64(n) {
			t.Fatalf("the other instance reads %v, want %d", got, n)
		}
	}
}

// sharedAfter is when Redis has an awaited report, and whether it does.
type sharedAfter struct {
	takes  time.Duration
	shared bool
}

func TestReport_IsWrittenToPostgresWhereRedisDoesNotHaveItInTime(t *testing.T) {
	broken := unavailable.Mark(errors.New("no answer"))
	for name, c := range map[string]struct {
		redis    sharedAfter
		uncached bool // the owner of the unit is not cached
		// The unit answers a request to its vehicle, some seconds after the cached owner has
		// expired.
		asked    bool
		open     bool // the circuit breaker of Redis is open
		postgres error
		takes    time.Duration
		stored   int // reports in Postgres
	}{
		"in Redis immediately":         {redis: sharedAfter{0, true}},
		"in Redis in 20 ms":            {redis: sharedAfter{20 * time.Millisecond, true}, takes: 20 * time.Millisecond},
		"in Redis in 20 ms, requested": {redis: sharedAfter{20 * time.Millisecond, true}, asked: true, takes: 20 * time.Millisecond},
		"refused by Redis":             {redis: sharedAfter{20 * time.Millisecond, false}, takes: 20 * time.Millisecond, stored: 1},
		"not in Redis in time":         {redis: sharedAfter{time.Hour, true}, takes: 125 * time.Millisecond, stored: 1},
		"Redis is unavailable":         {redis: sharedAfter{time.Hour, true}, open: true, stored: 1},
		"the unit is uncached":         {redis: sharedAfter{time.Hour, true}, uncached: true, stored: 1},
		"Postgres is unavailable, too": {redis: sharedAfter{time.Hour, true}, postgres: broken, takes: 125 * time.Millisecond, stored: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				twins := New(Config{DB: &pg.DB{}, Redis: &redis.DB{}})
				vehicle := telematics.Twin{Vehicle: telematics.Vehicle{ID: 1, Unit: "unit-1", Protocol: telematics.DefaultProtocol}}
				if !c.uncached {
					twins.owners.add(&vehicle)
				}
				report := delivery.Observation{Unit: vehicle.Unit, Protocol: vehicle.Protocol}
				if c.asked {
					report.Asked = vehicle.ID
					time.Sleep(ownerTTL + 10*time.Second)
				}
				if c.open {
					twins.writing.Record(broken)
				}
				stored := 0
				twins.lookups = groupcommit.New(
					groupcommit.Limits{MaxBatch: 1, Timeout: time.Second},
					func(context.Context, []delivery.Observation) ([]lookedUp, error) {
						return []lookedUp{{}}, nil // Postgres finds no owner
					},
				)
				twins.fallbacks = groupcommit.New(
					groupcommit.Limits{MaxBatch: 1, Timeout: time.Second},
					func(_ context.Context, reports []delivery.Observation) ([]fallback, error) {
						stored += len(reports)
						return make([]fallback, len(reports)), c.postgres
					},
				)
				began := time.Now()
				report.At, report.Report = began, statusAt(began, 1)
				wait := twins.Report(report)
				flush := time.AfterFunc(c.redis.takes, func() {
					for _, p := range twins.queue.take() {
						p.answer(c.redis.shared)
					}
				})
				defer flush.Stop()
				_, err := wait(t.Context())
				if took := time.Since(began); took != c.takes || stored != c.stored || !errors.Is(err, c.postgres) {
					t.Errorf(
						"took %v, Postgres got %d reports, error %v; want %v, %d, %v", took, stored, err, c.takes,
						c.stored, c.postgres,
					)
				}
				synctest.Wait()
			})
		})
	}
}

func TestReport_IsInPostgresWhereRedisRefusesIt(t *testing.T) {
	postgres := open(t, storetest.NewDatabase(t))
	redis := openRedis(t, storetest.Redis(t))
	twins := newTwins(postgres, redis, time.Hour)
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	require.NoError(t, redis.Client.Set(t.Context(), stateKey(id), "no hash", 0).Err())
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	_, err := awaited(t, twins, unit, statusAt(start, 3))
	require.NoError(t, err)
	if twin, err := postgres.Twin(t.Context(), id); mileage(t, twin, err) != 3 {
		t.Errorf("postgres has %v, want 3", mileage(t, twin, err))
	}
}

func TestReport_IsWrittenLaterWherePostgresIsUnavailable(t *testing.T) {
	server, postgres := ownServer(t, time.Second)
	add := storetest.Vehicles(t, postgres.DB)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for name, c := range map[string]struct {
		redis  string
		cached bool // the owner of the unit, which cannot be looked up
	}{
		"the unit is uncached":      {redis: storetest.StartMiniredis(t).URL()},
		"Redis is unavailable, too": {redis: storetest.NoRedis, cached: true},
	} {
		t.Run(name, func(t *testing.T) {
			twins := newTwins(postgres, openRedis(t, c.redis), 50*time.Millisecond)
			storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
			id, unit := add()
			if c.cached {
				observed(t, twins, unit, statusAt(start, 1))
			}
			require.NoError(t, server.Kill())
			if _, err := awaited(t, twins, unit, statusAt(start, 2)); !unavailable.Is(err) {
				t.Errorf("the caller got %v, want the error of an unavailable server", err)
			}
			require.NoError(t, server.Restart())
			storetest.Eventually(t, "postgres has the report", func() bool {
				twin, err := postgres.Twin(t.Context(), id)
				return err == nil && mileage(t, twin, err) == 2
			})
		})
	}
}

func TestRun_FlushesAllReportsAtItsEnd(t *testing.T) {
	t.Run("to Redis", func(t *testing.T) { endsWithReports(t, storetest.Redis(t)) })
	t.Run("to Postgres where there is no Redis", func(t *testing.T) { endsWithReports(t, storetest.NoRedis) })
}

func endsWithReports(t *testing.T, redis string) {
	postgres := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, postgres.DB)
	twins := newTwins(postgres, openRedis(t, redis), time.Hour)
	ctx, stop := context.WithCancel(t.Context())
	var observations []delivery.Observation
	var ids []telematics.VehicleID
	for range 20 {
		id, unit := add()
		ids = append(ids, id)
		observations = append(
			observations,
			delivery.Observation{Unit: unit, At: time.Now(), Report: statusAt(time.Now().Truncate(time.Millisecond), 7)},
		)
	}
	_, err := twins.Observe(t.Context(), observations)
	require.NoError(t, err)
	assert.Equal(t, twins.queue.size(), len(ids), "unwritten")
	stop()
	require.NoError(t, twins.Run(ctx, nil))
	read := newTwins(postgres, openRedis(t, redis), time.Hour).Twin
	if redis == storetest.NoRedis {
		read = postgres.Twin
	}
	for _, id := range ids {
		twin, err := read(t.Context(), id)
		assert.Equal(t, mileage(t, twin, err), 7, "vehicle %d: mileage", id)
	}
}

func TestCache_IsBoundedByItsSizeAndTheFleet(t *testing.T) {
	twins := newTwins(open(t, storetest.NewDatabase(t)), openRedis(t, storetest.StartMiniredis(t).URL()), 0)
	twins.hot.Resize(2) // less than the fleet
	add := storetest.Vehicles(t, twins.stored.DB)
	var ids []telematics.VehicleID
	var units []telematics.Unit
	for range 4 {
		id, unit := add()
		ids, units = append(ids, id), append(units, unit)
	}
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for n := range 5 {
		for _, unit := range units {
			observed(t, twins, unit, statusAt(start, n))
		}
	}
	assert.Equal(t, twins.queue.size(), len(units), "unwritten")
	for _, id := range ids {
		twin, err := twins.Twin(t.Context(), id)
		assert.Equal(t, mileage(t, twin, err), 4, "what vehicle %d reads before it is written", id)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := twins.Run(ended, nil); err != nil || twins.queue.size() > 0 {
		t.Fatalf("Run = %v, and %d still unwritten", err, twins.queue.size())
	}
	observed(t, twins, units[0], statusAt(start, 5))
	_, unit := add()
	observed(t, twins, unit, statusAt(start, 5))
	if n := twins.hot.Len(); n > 2 {
		t.Errorf("%d clean states are cached", n)
	}
}

// An alarm is raised once: one of a unit that could not be looked up waits for Postgres, also where
// the unit reports again meanwhile.
func TestTwins_AlarmOfAUnitThatWasNotLookedUpIsPublished(t *testing.T) {
	var published publishedChanges
	twins := newTwins(open(t, storetest.NewDatabase(t)), openRedis(t, storetest.StartMiniredis(t).URL()), 50*time.Millisecond)
	id, unit := storetest.AddVehicle(t, twins.stored.DB, 1)
	twins.owners.breaker.Record(errors.New("postgres is unavailable"))
	at := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	for n, kind := range []string{"towing", "crash", ""} {
		report := statusAt(at, n)
		if kind != "" {
			report.Alarms = []telematics.Alarm{{Kind: kind}}
		}
		observed(t, twins, unit, report)
	}
	assert.Equal(t, twins.unresolved.size(), 1, "units that were not looked up")
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, published.publish) })
	storetest.Eventually(t, "the alarms are published", func() bool {
		for _, change := range published.take() {
			if change.Vehicle == id && len(change.Alarms) == 2 && change.Alarms[0].Kind == "towing" && change.Alarms[1].Kind == "crash" {
				return true
			}
		}
		return false
	})
}

func TestTwins_ListByConnectivityHasThatConnectivity(t *testing.T) {
	twins := newTwins(open(t, storetest.NewDatabase(t)), openRedis(t, storetest.StartMiniredis(t).URL()), 0)
	_, unit := storetest.AddVehicle(t, twins.stored.DB, 1)
	// Its presence is not in Postgres yet.
	observed(t, twins, unit, statusAt(time.Now().Truncate(time.Millisecond), 1))
	for queried, want := range map[telematics.PresenceStatus][]telematics.PresenceStatus{
		"": {telematics.Online}, telematics.Absent: {telematics.Absent}, telematics.Online: nil,
	} {
		found, err := twins.Twins(t.Context(), telematics.VehicleQuery{Connectivity: queried})
		require.NoError(t, err)
		var got []telematics.PresenceStatus
		for _, twin := range found {
			got = append(got, twin.Contact.At(time.Now()))
		}
		assert.EqualSlices(t, got, want, "the list for the connectivity %q has vehicles that", queried)
	}
}

func TestTwins_MovedUnitLeavesTheStateAtItsVehicle(t *testing.T) {
	database, redis := storetest.NewDatabase(t), storetest.StartMiniredis(t).URL()
	twins := twinsAt(t, database, redis)
	first, unit := storetest.AddVehicle(t, twins.stored.DB, 1)
	second, other := storetest.AddVehicle(t, twins.stored.DB, 2)
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(at, 100))
	observed(t, twins, other, statusAt(at, 200))
	storetest.Eventually(t, "all states are written", func() bool { return twins.unwritten() == 0 })
	for _, change := range []string{`update units set vehicle_id = null`, `update units set vehicle_id = 3 - right(serial, 1)::int`} {
		storetest.Exec(t, twins.stored.Pool, change)
	}
	moved := twinsAt(t, database, redis) // with an empty cache of owners
	observed(t, moved, unit, statusAt(at, 101))
	late := statusAt(at.Add(10*time.Minute), 102) // which the unit could not send before the move
	late.Alarms = []telematics.Alarm{{Kind: "towing"}}
	if seen := observed(t, moved, unit, late); len(seen.Changes) != 0 {
		t.Errorf("a report of before the move changes %+v", seen.Changes)
	}
	_, err := awaited(t, moved, unit, statusAt(at.Add(11*time.Minute), 103))
	require.NoError(t, err)
	for _, reader := range []*Twins{twins, moved} {
		one, err := reader.Twin(t.Context(), first)
		// The vehicle keeps the state that was stored.
		assert.Equal(t, mileage(t, one, err), 100, "the first vehicle's mileage")
		two, err := reader.Twin(t.Context(), second)
		if got := mileage(t, two, err); got != 200 { // of two readings of one time, the stored one
			t.Errorf("the second vehicle's mileage is %v, want 200", got)
		}
	}
}
