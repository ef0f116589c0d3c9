package store

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// twinsAt opens an instance's twins, and writes behind until the test ends.
func twinsAt(t *testing.T, database, redis string) *Twins {
	t.Helper()
	return twinsTelling(t, database, redis, nil)
}

func twinsTelling(t *testing.T, database, redis string, tell func([]telematics.Change)) *Twins {
	t.Helper()
	twins := NewTwins(TwinsConfig{Postgres: open(t, database), Redis: openRedis(t, redis), Every: 50 * time.Millisecond})
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, tell) })
	return twins
}

// running runs something until the test ends.
// changesTold collects what twins tell.
type changesTold struct {
	mu   sync.Mutex
	list []telematics.Change
}

func (c *changesTold) tell(changes []telematics.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, changes...)
}

func (c *changesTold) take() []telematics.Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	list := c.list
	c.list = nil
	return list
}

func TestTwinsKeepTheirContractOverRedisAndPostgres(t *testing.T) {
	t.Parallel()
	for name, redis := range map[string]string{"miniredis": storetest.StartMiniredis(t).URL(), "redis": storetest.StartRedis(t).URL()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var told changesTold
			database := storetest.NewDatabase(t)
			here, there := twinsTelling(t, database, redis, told.tell), twinsTelling(t, database, redis, told.tell)
			add := storetest.Vehicles(t, here.postgres.DB)
			settled := func() {
				storetest.Eventually(t, "both instances owe nothing", func() bool { return here.Behind()+there.Behind() == 0 })
			}
			brokertest.TwinsContract(t, func(t *testing.T) brokertest.TwinRecord {
				return brokertest.TwinRecord{
					Here: here, There: there, Vehicle: add,
					Published: func() []telematics.Change { settled(); return told.take() },
					Twin: func(id telematics.VehicleID) telematics.Twin {
						settled()
						twin, err := there.Twin(context.Background(), id)
						if err != nil {
							t.Fatal(err)
						}
						return twin
					},
				}
			})
		})
	}
}

// statusAt returns a report of a few sections, of which each value tells the instant.
func statusAt(at time.Time, n int) *telematics.Report {
	return &telematics.Report{At: at.Add(time.Duration(n) * time.Second), Values: map[telematics.Field]any{
		telematics.Latitude: float64(n % 90), telematics.Longitude: float64(n % 90),
		telematics.MileageKm: float64(n), telematics.OEMData: map[string]any{"n": float64(n)},
	}}
}

func observed(t *testing.T, twins *Twins, unit telematics.Unit, report *telematics.Report) delivery.Seen {
	t.Helper()
	seen, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: report}})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func mileage(t *testing.T, twin telematics.Twin, err error) float64 {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if km := twin.Snapshot.Number(telematics.MileageKm); km != nil {
		return *km
	}
	return -1
}

func TestAnEmptiedRedisLosesNothingThatWasWritten(t *testing.T) {
	server := storetest.StartRedis(t)
	database := storetest.NewDatabase(t)
	here, there := twinsAt(t, database, server.URL()), twinsAt(t, database, server.URL())
	id, unit := storetest.AddVehicle(t, here.postgres.DB, 1)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for n := range 20 {
		twins := []*Twins{here, there}[n%2]
		observed(t, twins, unit, statusAt(start, n))
		if n%5 == 4 {
			if err := twins.redis.db.Client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		}
		twin, err := twins.Twin(t.Context(), id)
		if got := mileage(t, twin, err); got != float64(n) {
			t.Fatalf("report %d: the instance that took it reads %v", n, got)
		}
		storetest.Eventually(t, "the other instance reads it, too", func() bool {
			twin, err := []*Twins{here, there}[1-n%2].Twin(t.Context(), id)
			return mileage(t, twin, err) == float64(n)
		})
	}
	storetest.Eventually(t, "postgres has all of it", func() bool {
		twin, err := here.postgres.Twin(t.Context(), id)
		return mileage(t, twin, err) == 19
	})
	storetest.Eventually(t, "nothing is owed any more", func() bool { return here.Behind()+there.Behind() == 0 })
}

func TestARestartedRedisIsFilledAgain(t *testing.T) {
	server := storetest.StartRedis(t)
	twins := twinsAt(t, storetest.NewDatabase(t), server.URL())
	id, unit := storetest.AddVehicle(t, twins.postgres.DB, 1)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(start, 1))
	for _, step := range []func() error{server.Kill, nil, server.Restart} {
		if step == nil { // while it is away
			observed(t, twins, unit, statusAt(start, 2))
			twin, err := twins.Twin(t.Context(), id)
			if got := mileage(t, twin, err); got != 2 {
				t.Errorf("without redis mileage reads %v", got)
			}
			continue
		}
		if err := step(); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Eventually(t, "redis has what came while it was away", func() bool {
		held, err := twins.redis.latestOf(t.Context(), []telematics.VehicleID{id})
		km := held[id].snapshot.Number(telematics.MileageKm)
		return err == nil && km != nil && *km == 2
	})
}

func TestWhatPostgresMissesIsOwedToIt(t *testing.T) {
	server, postgres := ownServer(t, time.Second)
	twins := NewTwins(TwinsConfig{Postgres: postgres, Redis: openRedis(t, storetest.StartMiniredis(t).URL()), Every: 50 * time.Millisecond})
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(start, 1))
	for name, trouble := range map[string][2]func() error{"killed": {server.Kill, server.Restart}, "frozen": {server.Pause, server.Resume}} {
		if err := trouble[0](); err != nil {
			t.Fatal(err)
		}
		for n := range 5 {
			observed(t, twins, unit, statusAt(start, 10*len(name)+n))
		}
		if err := trouble[1](); err != nil {
			t.Fatal(err)
		}
		storetest.Eventually(t, name+": postgres has what came meanwhile", func() bool {
			twin, err := postgres.Twin(t.Context(), id)
			return err == nil && mileage(t, twin, err) == float64(10*len(name)+4)
		})
	}
}

func TestAnAwaitedReportIsSeenByEveryInstanceAtOnce(t *testing.T) {
	database, redis := storetest.NewDatabase(t), storetest.StartMiniredis(t).URL()
	postgres := open(t, database)
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	here := NewTwins(TwinsConfig{Postgres: postgres, Redis: openRedis(t, redis), Every: time.Hour})
	there := NewTwins(TwinsConfig{Postgres: open(t, database), Redis: openRedis(t, redis), Every: time.Hour})
	storetest.Run(t, func(ctx context.Context) error { return here.Run(ctx, nil) })
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for n := range 20 {
		o := delivery.Observation{Unit: unit, At: time.Now(), Report: statusAt(start, n), Awaited: true}
		brought := here.ObserveAndFlush(o)
		switch {
		case (brought == nil) != (n == 0):
			t.Fatalf("the unit was looked up %d times, and a report is brought: %v", n, brought != nil)
		case brought == nil:
			if _, err := here.Observe(t.Context(), []delivery.Observation{o}); err != nil {
				t.Fatal(err)
			}
		case !<-brought:
			t.Fatal("Redis does not have it")
		}
		twin, err := there.Twin(t.Context(), id)
		if got := mileage(t, twin, err); got != float64(n) {
			t.Fatalf("the other instance says %v, want %d", got, n)
		}
	}
}

func TestAnAwaitedReportIsInPostgresWhileRedisIsAway(t *testing.T) {
	postgres := open(t, storetest.NewDatabase(t))
	server := storetest.StartRedis(t)
	twins := NewTwins(TwinsConfig{Postgres: postgres, Redis: openRedis(t, server.URL()), Every: time.Hour})
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		if _, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: statusAt(start, n), Awaited: true}}); err != nil {
			t.Fatal(err)
		}
		twin, err := postgres.Twin(t.Context(), id)
		if got := mileage(t, twin, err); got != float64(n) {
			t.Fatalf("postgres says %v, want %d", got, n)
		}
	}
}

func TestAnAwaitedReportThatRedisRefusesIsInPostgres(t *testing.T) {
	postgres := open(t, storetest.NewDatabase(t))
	redis := openRedis(t, storetest.StartRedis(t).URL())
	twins := NewTwins(TwinsConfig{Postgres: postgres, Redis: redis, Every: time.Hour})
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	if err := redis.Client.Set(t.Context(), latestKey(id), "no hash", 0).Err(); err != nil {
		t.Fatal(err)
	}
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	if _, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: statusAt(start, 3), Awaited: true}}); err != nil {
		t.Fatal(err)
	}
	if twin, err := postgres.Twin(t.Context(), id); mileage(t, twin, err) != 3 {
		t.Errorf("postgres says %v", mileage(t, twin, err))
	}
	if brought := twins.ObserveAndFlush(delivery.Observation{Unit: unit, At: time.Now(), Report: statusAt(start, 4), Awaited: true}); brought != nil {
		t.Error("a report is brought to where one was refused a moment ago")
	}
}

// Nobody knows yet whose the unit is, and Postgres cannot say.
func TestAnAwaitedReportOfAUnitThatWasNeverLookedUpIsOwedToPostgres(t *testing.T) {
	server, postgres := ownServer(t, time.Second)
	twins := NewTwins(TwinsConfig{Postgres: postgres, Redis: openRedis(t, storetest.StartMiniredis(t).URL()), Every: 50 * time.Millisecond})
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: statusAt(time.Now().Truncate(time.Millisecond), 2), Awaited: true}}); !unavailable.Is(err) {
		t.Errorf("whoever waits is told %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	storetest.Eventually(t, "postgres has the report", func() bool {
		twin, err := postgres.Twin(t.Context(), id)
		return err == nil && mileage(t, twin, err) == 2
	})
}

func TestAnAwaitedReportThatPostgresMissesIsOwedToIt(t *testing.T) {
	server, postgres := ownServer(t, time.Second)
	redis := storetest.StartRedis(t)
	twins := NewTwins(TwinsConfig{Postgres: postgres, Redis: openRedis(t, redis.URL()), Every: 50 * time.Millisecond})
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(start, 1))
	if err := errors.Join(server.Kill(), redis.Kill()); err != nil {
		t.Fatal(err)
	}
	_, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: statusAt(start, 2), Awaited: true}})
	if !unavailable.Is(err) {
		t.Errorf("whoever waits is told %v", err)
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	storetest.Eventually(t, "postgres has the report", func() bool {
		twin, err := postgres.Twin(t.Context(), id)
		return err == nil && mileage(t, twin, err) == 2
	})
}

func TestTheEndOfAnInstanceLosesNoReport(t *testing.T) {
	database := storetest.NewDatabase(t)
	postgres := open(t, database)
	add := storetest.Vehicles(t, postgres.DB)
	twins := NewTwins(TwinsConfig{Postgres: postgres, Redis: openRedis(t, storetest.StartMiniredis(t).URL()), Every: time.Hour})
	ctx, stop := context.WithCancel(t.Context())
	var observations []delivery.Observation
	var ids []telematics.VehicleID
	for range 20 {
		id, unit := add()
		ids = append(ids, id)
		observations = append(observations, delivery.Observation{Unit: unit, At: time.Now(), Report: statusAt(time.Now().Truncate(time.Millisecond), 7)})
	}
	if _, err := twins.Observe(t.Context(), observations); err != nil {
		t.Fatal(err)
	}
	if want := 2 * len(ids); twins.Behind() != want { // to Redis and to Postgres
		t.Errorf("owed: %d, want %d", twins.Behind(), want)
	}
	stop()
	if err := twins.Run(ctx, nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		twin, err := postgres.Twin(t.Context(), id)
		if got := mileage(t, twin, err); got != 7 {
			t.Errorf("vehicle %d: mileage %v", id, got)
		}
	}
}

func TestWhatIsOwedIsBoundedByTheFleet(t *testing.T) {
	twins := NewTwins(TwinsConfig{Postgres: open(t, storetest.NewDatabase(t)), Redis: openRedis(t, storetest.StartMiniredis(t).URL())})
	twins.known.size = 2 // less than the fleet
	add := storetest.Vehicles(t, twins.postgres.DB)
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
	if want := 2 * len(units); twins.Behind() != want { // to Redis and to Postgres
		t.Errorf("owed: %d, want %d", twins.Behind(), want)
	}
	for _, id := range ids {
		twin, err := twins.Twin(t.Context(), id)
		if got := mileage(t, twin, err); got != 4 {
			t.Errorf("vehicle %d reads %v before it is written", id, got)
		}
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := twins.Run(ended, nil); err != nil || twins.Behind() > 0 {
		t.Fatalf("Run = %v, and still owed %d", err, twins.Behind())
	}
	observed(t, twins, units[0], statusAt(start, 5))
	_, unit := add()
	observed(t, twins, unit, statusAt(start, 5))
	if n := len(twins.known.vehicles); n > 2 {
		t.Errorf("%d vehicles are remembered, of which nothing is owed", n)
	}
}

func TestAListByConnectivityShowsWhatItFound(t *testing.T) {
	twins := NewTwins(TwinsConfig{Postgres: open(t, storetest.NewDatabase(t)), Redis: openRedis(t, storetest.StartMiniredis(t).URL())})
	_, unit := storetest.AddVehicle(t, twins.postgres.DB, 1)
	observed(t, twins, unit, statusAt(time.Now().Truncate(time.Millisecond), 1)) // not in Postgres yet
	for _, asked := range []telematics.PresenceStatus{"", telematics.Absent, telematics.Online} {
		found, err := twins.Twins(t.Context(), telematics.VehicleQuery{Connectivity: asked})
		if err != nil {
			t.Fatal(err)
		}
		for _, twin := range found {
			if is := twin.Contact.At(time.Now()); asked != "" && is != asked {
				t.Errorf("a list of what is %s shows a vehicle that is %s", asked, is)
			}
		}
	}
}

func TestAUnitThatMovesTakesNothingAlong(t *testing.T) {
	database, redis := storetest.NewDatabase(t), storetest.StartMiniredis(t).URL()
	twins := twinsAt(t, database, redis)
	first, unit := storetest.AddVehicle(t, twins.postgres.DB, 1)
	second, other := storetest.AddVehicle(t, twins.postgres.DB, 2)
	at := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(at, 100))
	observed(t, twins, other, statusAt(at, 200))
	storetest.Eventually(t, "all of it is written", func() bool { return twins.Behind() == 0 })
	for _, change := range []string{`update units set vehicle_id = null`, `update units set vehicle_id = 3 - right(serial, 1)::int`} {
		if _, err := twins.postgres.Pool.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	moved := twinsAt(t, database, redis) // whose directory is fresh
	observed(t, moved, unit, statusAt(at, 101))
	for _, reader := range []*Twins{twins, moved} {
		one, err := reader.Twin(t.Context(), first)
		if got := mileage(t, one, err); got != 100 { // what was written of the vehicle stays its own
			t.Errorf("the first vehicle reads %v", got)
		}
		two, err := reader.Twin(t.Context(), second)
		if got := mileage(t, two, err); got != 200 { // the newer reading of that time
			t.Errorf("the second vehicle reads %v", got)
		}
	}
}
