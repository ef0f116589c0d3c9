package twins

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// dueTwins is a set of instances with one vehicle. The test calls their flushes.
type dueTwins struct {
	*testing.T
	instances []*Twins
	add       func() (telematics.VehicleID, telematics.Unit)
	id        telematics.VehicleID
	unit      telematics.Unit
	start     time.Time
}

func newDueTwins(t *testing.T, instances int, interval time.Duration) *dueTwins {
	t.Helper()
	database, redis := storetest.NewDatabase(t), storetest.Redis(t)
	d := &dueTwins{T: t, start: time.Now().Add(-time.Hour).Truncate(time.Millisecond)}
	for range instances {
		d.instances = append(d.instances, withInterval(open(t, database), openRedis(t, redis), interval))
	}
	d.add = storetest.Vehicles(t, d.instances[0].stored.DB)
	return d.with(t)
}

// with returns the instances with another vehicle, for a part of the test.
func (d *dueTwins) with(t *testing.T) *dueTwins {
	part := *d
	part.T = t
	part.id, part.unit = d.add()
	return &part
}

func (d *dueTwins) report(twins *Twins, n int, more ...telematics.Field) {
	d.Helper()
	report := statusAt(d.start, n)
	for _, field := range more {
		report.Values[field] = n%2 == 0
	}
	observed(d.T, twins, d.unit, report)
	if !twins.flushRedis(d.Context(), nil) {
		d.Fatal("redis was not available")
	}
}

func (d *dueTwins) writeDue(twins *Twins) {
	d.Helper()
	for part := range twins.dues.due {
		require.NoError(d, twins.writeDue(d.Context(), part))
	}
}

// stored returns the mileage in Postgres.
func (d *dueTwins) stored() float64 {
	d.Helper()
	twin, err := d.instances[0].vehicles.Twin(d.Context(), d.id)
	return mileage(d.T, twin, err)
}

func TestWriteDue_WritesAReportAfterTheInterval(t *testing.T) {
	const interval = 400 * time.Millisecond
	d := newDueTwins(t, 2, interval)
	here, there := d.instances[0], d.instances[1]
	d.report(here, 1)
	d.writeDue(there) // the first report of a vehicle is due immediately
	if got := d.stored(); got != 1 {
		t.Fatalf("postgres has %v after the first report, want 1", got)
	}
	began := time.Now()
	d.report(here, 2)
	d.report(there, 3)
	d.writeDue(here)
	if got := d.stored(); got != 1 && time.Since(began) < interval*9/10 {
		t.Errorf("postgres has %v before the interval is over, want 1", got)
	}
	for _, twins := range d.instances {
		twin, err := twins.Twin(t.Context(), d.id)
		assert.Equal(t, mileage(t, twin, err), 3, "what an instance reads meanwhile")
	}
	storetest.Eventually(t, "the report is written", func() bool { d.writeDue(there); return d.stored() == 3 })
	if took := time.Since(began); took < interval*9/10 || here.unwritten() > 0 {
		t.Errorf("written after %v, %d unwritten; want after about the interval, and none", took, here.unwritten())
	}
}

// A tow must not wait for the interval, and a drive may.
func TestWriteDue_IsSoonerForAMoveWithTheIgnitionOff(t *testing.T) {
	all := newDueTwins(t, 1, time.Minute)
	for name, c := range map[string]struct {
		ignition string
		north    float64
		within   time.Duration
	}{
		"ignition off":         {"off", 48.001, urgentWithin},
		"ignition off, closer": {"off", 48.0001, time.Minute},
		"ignition on":          {"on", 48.001, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			d := all.with(t)
			twins := d.instances[0]
			var began time.Time // of the last report
			for i, north := range []float64{48, c.north} {
				at := d.start.Add(time.Duration(i) * time.Second)
				report := &telematics.Report{At: at, Values: map[telematics.Field]any{
					telematics.Latitude: north, telematics.Longitude: 11.5, telematics.Ignition: c.ignition,
				}}
				began = time.Now()
				seen := []delivery.Observation{{Unit: d.unit, At: began, Report: report}}
				_, err := twins.Observe(t.Context(), seen)
				require.NoError(t, err)
				twins.flushRedis(t.Context(), nil)
				if i == 0 {
					d.writeDue(twins)
				}
			}
			d.wantDue(twins, began, c.within)
		})
	}
}

// wantDue checks that the vehicle is due at about a time after a report, which began then and has
// ended; within 0: that it was due before.
func (d *dueTwins) wantDue(twins *Twins, began time.Time, within time.Duration) {
	d.Helper()
	ended := time.Now()
	score, err := twins.redis.db.Client.ZScore(d.Context(), twins.dues.due[0], fmt.Sprint(d.id)).Result()
	require.NoError(d, err)
	due := time.UnixMilli(int64(score))
	if due.After(ended.Add(within)) || within > 0 && due.Before(began.Add(within/2)) {
		d.Errorf("due %v after the report began, %v after it ended; want about %v", due.Sub(began), due.Sub(ended), within)
	}
}

func TestWriteDue_IsSoonerForUrgentReports(t *testing.T) {
	presence := func(status telematics.PresenceStatus) func(d *dueTwins, twins *Twins) {
		return func(d *dueTwins, twins *Twins) {
			d.Helper()
			p := telematics.Presence{Status: status, Session: "s", At: time.Now()}
			_, err := twins.Observe(d.Context(), []delivery.Observation{{Unit: d.unit, At: time.Now(), Presence: &p}})
			require.NoError(d, err)
		}
	}
	const interval = time.Minute
	all := newDueTwins(t, 2, interval)
	for name, test := range map[string]struct {
		before func(d *dueTwins, twins *Twins)
		fields []telematics.Field
		await  bool
		within time.Duration
	}{
		"no urgent field":               {within: interval},
		"a change of the lock":          {fields: []telematics.Field{telematics.IsLocked}, within: urgentWithin},
		"a report awaited by a command": {await: true, within: urgentWithin},
		"a unit in standby":             {before: presence(telematics.Standby)},
		"an offline unit":               {before: presence(telematics.Offline)},
		"an online unit":                {before: presence(telematics.Online), within: interval},
		"half of OnlineFor after the last report": {before: func(d *dueTwins, twins *Twins) {
			long := time.Now().Add(-telematics.OnlineFor / 2).UnixMicro()
			require.NoError(d, twins.redis.db.Client.HSet(d.Context(), stateKey(d.id), "seen", long).Err())
		}},
		"redis emptied, postgres up to date": {before: func(d *dueTwins, twins *Twins) {
			require.NoError(d, twins.redis.db.Client.FlushDB(d.Context()).Err())
		}, within: interval},
	} {
		t.Run(name, func(t *testing.T) {
			d := all.with(t)
			d.report(d.instances[0], 1, telematics.IsLocked)
			d.writeDue(d.instances[0])
			presence(telematics.Online)(d, d.instances[0])
			if test.before != nil {
				test.before(d, d.instances[0])
			}
			twins, began := d.instances[1], time.Now()
			if test.await {
				wait := twins.Report(delivery.Observation{Unit: d.unit, At: time.Now(), Report: statusAt(d.start, 2)})
				storetest.Eventually(t, "the report waits for the flush to redis", func() bool { return twins.queue.size() > 0 })
				twins.flushRedis(t.Context(), nil)
				_, err := wait(t.Context())
				require.NoError(t, err)
			} else {
				d.report(twins, 2, test.fields...)
			}
			d.wantDue(twins, began, test.within)
			if test.within == urgentWithin { // on a busy machine it may be due by now
				return
			}
			d.writeDue(twins)
			if got := d.stored(); (got == 2) != (test.within == 0) {
				t.Errorf("postgres has report %v, where report 2 is due in %v", got, test.within)
			}
		})
	}
}

func TestWriteDue_AnotherInstanceTakesOverAfterTheLease(t *testing.T) {
	d := newDueTwins(t, 2, time.Minute)
	here, there := d.instances[0], d.instances[1]
	d.report(here, 1)
	if taken, err := here.dues.lease(t.Context(), 0, dueBatch); err != nil || !slices.Equal(taken.vehicles, []telematics.VehicleID{d.id}) {
		t.Fatalf("leased %v, %v; want the vehicle", taken, err)
	}
	if taken, err := there.dues.lease(t.Context(), 0, dueBatch); err != nil || len(taken.vehicles) > 0 {
		t.Errorf("the other instance leased %v, %v; want none", taken, err)
	}
	// The lease expires.
	require.NoError(t, here.redis.db.Client.ZIncrBy(t.Context(), here.dues.writing[0], -float64(2*dueLease.Milliseconds()),
		fmt.Sprint(int64(d.id))).Err())
	d.writeDue(there)
	if got := d.stored(); got != 1 || there.unwritten() > 0 {
		t.Errorf("postgres has report %v, %d unwritten; want report 1, and none", got, there.unwritten())
	}
}

// Else a state is in no list while the second instance writes it, and stays in Redis alone where
// that instance dies.
func TestDone_EndsNoLeaseOfAnotherInstance(t *testing.T) {
	d := newDueTwins(t, 2, time.Minute)
	here, there := d.instances[0], d.instances[1]
	leased := func(twins *Twins) lease {
		time.Sleep(2 * time.Millisecond) // the leases end at different times
		taken, err := twins.dues.lease(t.Context(), 0, dueBatch)
		if err != nil || len(taken.vehicles) != 1 {
			t.Fatalf("leased %v, %v; want the vehicle", taken, err)
		}
		return taken
	}
	d.report(here, 1)
	first := leased(here)
	// The vehicle reports again.
	require.NoError(t, here.dues.makeDue(t.Context(), []telematics.VehicleID{d.id}))
	second := leased(there)
	for _, end := range []struct {
		of   lease
		left int
	}{{first, 1}, {second, 0}} {
		require.NoError(t, here.dues.done(t.Context(), end.of, end.of.vehicles))
		if left := here.unwritten(); left != end.left {
			t.Errorf("%d leases left, want %d", left, end.left)
		}
	}
}

// The clocks were 74 years ahead when the state was noted as due, or leased.
func TestWriteDue_WritesWhatIsDueLaterThanItCanBe(t *testing.T) {
	d := newDueTwins(t, 1, time.Minute)
	here := d.instances[0]
	d.report(here, 1)
	d.writeDue(here)
	for n, key := range []string{here.dues.due[0], here.dues.writing[0]} {
		d.report(here, 2+n)
		here.redis.db.Client.Del(t.Context(), here.dues.due[0])
		far := goredis.Z{Score: float64(time.Now().AddDate(74, 0, 0).UnixMilli()), Member: int64(d.id)}
		require.NoError(t, here.redis.db.Client.ZAdd(t.Context(), key, far).Err())
		d.writeDue(here)
		if got := d.stored(); got != float64(2+n) {
			t.Errorf("%s: postgres has %v, want %d", key, got, 2+n)
		}
	}
}

func TestObserve_GoesToPostgresWhileRedisIsUnavailable(t *testing.T) {
	postgres := open(t, storetest.NewDatabase(t))
	twins := withInterval(postgres, openRedis(t, storetest.NoRedis), time.Minute)
	storetest.Run(t, func(ctx context.Context) error { return twins.Run(ctx, nil) })
	id, unit := storetest.AddVehicle(t, postgres.DB, 1)
	for n := range 3 {
		observed(t, twins, unit, statusAt(time.Now().Add(-time.Minute).Truncate(time.Millisecond), n))
		storetest.Eventually(t, "postgres has the report", func() bool {
			twin, err := postgres.Twin(t.Context(), id)
			return mileage(t, twin, err) == float64(n)
		})
	}
}

// Whatever instances, readers and other writers of Postgres do concurrently, no report is lost, and
// Postgres never loses a reading.
func TestWriteDue_LosesNoConcurrentWrites(t *testing.T) {
	fields := []telematics.Field{
		telematics.MileageKm, telematics.SpeedKmh, telematics.OnboardV, telematics.ServiceDueKm, telematics.Latitude,
	}
	all := newDueTwins(t, 3, time.Millisecond)
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			d := all.with(t)
			var want, before telematics.Snapshot
			for n := range 60 {
				twins := d.instances[random.IntN(len(d.instances))]
				report := &telematics.Report{
					At: d.start.Add(time.Duration(random.IntN(40)) * time.Second), Values: map[telematics.Field]any{},
				}
				for range 1 + random.IntN(3) {
					report.Values[fields[random.IntN(len(fields))]] = float64(n % 90)
				}
				switch action := random.IntN(8); action {
				case 0, 1, 2:
					observed(t, twins, d.unit, report)
					want = telematics.Merge(want, *report)
				case 3:
					twins.flushRedis(t.Context(), nil)
				case 4:
					d.writeDue(twins)
				case 5:
					if _, err := Store(t.Context(), twins.stored.DB,
						[]delivery.Observation{{Unit: d.unit, At: time.Now(), Report: report}}); err != nil {
						t.Fatal(err)
					}
					want = telematics.Merge(want, *report)
				case 6:
					if _, err := twins.DurableTwin(t.Context(), d.id); err != nil {
						t.Fatal(err)
					}
				case 7:
					twins.hot.Purge() // as a larger fleet would
				}
				twin, err := twins.vehicles.Twin(t.Context(), d.id)
				require.NoError(t, err)
				if joined := telematics.Join(before, twin.Snapshot); joined.Len() != twin.Snapshot.Len() ||
					!sameReadings(joined, twin.Snapshot) {
					t.Fatalf("step %d: postgres has %v, and had %v before", n, twin.Snapshot, before)
				}
				before = twin.Snapshot
			}
			for _, twins := range d.instances {
				twins.flushRedis(t.Context(), nil)
			}
			time.Sleep(5 * time.Millisecond)
			for _, twins := range d.instances {
				d.writeDue(twins)
			}
			twin, err := d.instances[0].vehicles.Twin(t.Context(), d.id)
			if err != nil || !sameReadings(want, twin.Snapshot) {
				t.Errorf("postgres has\n%v, want\n%v; error %v", twin.Snapshot, want, err)
			}
		})
	}
}

func sameReadings(a, b telematics.Snapshot) bool {
	for field, reading := range a.All() {
		if other := b.Of(field); !b.Has(field) || !other.At.Equal(reading.At) || !telematics.SameValue(other.Value, reading.Value) {
			return false
		}
	}
	return a.Len() == b.Len()
}

// wantListed checks the mileage that an instance returns in a list, and whether it is stored.
func (d *dueTwins) wantListed(what string, twins *Twins, want float64, unstored bool) {
	d.Helper()
	list, err := twins.Twins(d.Context(), telematics.VehicleQuery{})
	if err != nil || len(list) != 1 {
		d.Fatalf("%s: %d vehicles, %v", what, len(list), err)
	}
	if got := mileage(d.T, list[0], nil); got != want || list[0].Unstored != unstored {
		d.Errorf("%s: the list has %v, unstored %t; want %v, unstored %t", what, got, list[0].Unstored, want, unstored)
	}
}

func TestTwins_ListTellsWhatPostgresDoesNotHave(t *testing.T) {
	d := newDueTwins(t, 3, time.Hour)
	here, there, started := d.instances[0], d.instances[1], d.instances[2]
	d.report(here, 1)
	d.writeDue(there)
	d.wantListed("after the first report is stored", there, 1, false)
	d.report(here, 2)
	d.wantListed("before the second report is stored", here, 2, true)
	d.wantListed("before the second report is stored, at another instance", there, 2, true)
	if twin, err := there.DurableTwin(t.Context(), d.id); mileage(t, twin, err) != 2 || twin.Unstored {
		t.Errorf("the status is %v, unstored %t; want it stored", twin.Snapshot, twin.Unstored)
	}
	d.wantListed("after the status was read", here, 2, false)
	require.NoError(t, here.redis.db.Client.FlushDB(t.Context()).Err())
	d.wantListed("without Redis, at an instance that has just started", started, 2, false)
}

// A status is returned where Postgres cannot store it in time.
func TestDurableTwin_TellsThatItIsNotStored(t *testing.T) {
	d := newDueTwins(t, 1, time.Hour)
	twins := d.instances[0]
	d.report(twins, 1)
	d.writeDue(twins)
	d.report(twins, 2)
	lock := storetest.Begin(t, twins.stored.Pool)
	storetest.Exec(t, lock, `select from units where serial = $1 for update`, d.unit)
	twin, err := twins.DurableTwin(t.Context(), d.id)
	if got := mileage(t, twin, err); got != 2 || !twin.Unstored {
		t.Errorf("while the unit is locked: %v, unstored %t; want 2, unstored", got, twin.Unstored)
	}
	require.NoError(t, lock.Rollback())
	twin, err = twins.DurableTwin(t.Context(), d.id)
	if got := mileage(t, twin, err); got != 2 || twin.Unstored {
		t.Errorf("afterwards: %v, unstored %t; want 2, stored", got, twin.Unstored)
	}
}

// The answers of a unit without a report are signs of life, which a status must not take back.
func TestDurableTwin_StoresWhenTheUnitWasLastSeen(t *testing.T) {
	d := newDueTwins(t, 1, time.Hour)
	twins := d.instances[0]
	d.report(twins, 1)
	d.writeDue(twins)
	seen := time.Now().Add(time.Minute).Truncate(time.Microsecond).UTC()
	_, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: d.unit, At: seen}})
	require.NoError(t, err)
	if twin, err := twins.DurableTwin(t.Context(), d.id); err != nil || !twin.Contact.LastSeen.Equal(seen) || twin.Unstored {
		t.Errorf("last seen %v, unstored %t, %v; want %v, stored", twin.Contact.LastSeen, twin.Unstored, err, seen)
	}
	if twin, err := twins.vehicles.Twin(t.Context(), d.id); err != nil || !twin.Contact.LastSeen.Equal(seen) {
		t.Errorf("postgres has last seen %v, %v; want %v", twin.Contact.LastSeen, err, seen)
	}
}
