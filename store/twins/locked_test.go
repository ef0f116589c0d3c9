package twins

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// What is observed of a unit that another transaction holds is not stored, and said to be; the
// rest of the batch is stored without waiting for it.
func TestObserve_LockedUnitDelaysNoOther(t *testing.T) {
	db := storetest.OpenWith(t, pg.Config{URL: storetest.NewDatabase(t), Timeout: time.Minute})
	p, add := newRecord(db), storetest.Vehicles(t, db)
	held, unit := add()
	other, otherUnit := add()
	var batch []observation
	var states []dueState
	for id, serial := range map[telematics.VehicleID]telematics.Unit{held: unit, other: otherUnit} {
		report := telematics.Report{At: morning, Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}
		o := newObservation(delivery.Observation{Unit: serial, At: morning, Report: &report})
		batch = append(batch, o)
		states = append(states, dueState{vehicle: id, redisState: redisState{unit: serial, snapshot: o.readings, seen: morning}})
	}
	batch = append(batch, newObservation(delivery.Observation{Unit: "unknown-unit", At: morning}))
	tx := storetest.Begin(t, db.Pool)
	tx.MustExec(`select from units where serial = $1 for update`, unit)

	began := time.Now()
	seen, left, err := p.observe(t.Context(), batch)
	if err != nil || len(left) != 1 || left[0].Unit != unit || !slices.Equal(seen.Locked, []telematics.Unit{unit}) ||
		!slices.Equal(seen.Unknown, []telematics.Unit{"unknown-unit"}) {
		t.Errorf("observe = %+v, %v, %v; want %s left as locked", seen, left, err, unit)
	}
	done, waiting, err := p.storeDue(t.Context(), states, func(int64) base { return "1" })
	if !unavailable.Is(err) || len(done) != 1 || done[0].vehicle != other || !slices.Equal(waiting, []telematics.VehicleID{held}) {
		t.Errorf("storeDue = %+v, %v, %v; want vehicle %d left", done, waiting, err, held)
	}
	if took := time.Since(began); took > db.Timeout()/pg.LockShare/2 {
		t.Errorf("took %v, want it not to wait for the lock", took)
	}
	stored := func(id telematics.VehicleID) bool {
		twin, err := p.Twin(t.Context(), id)
		require.NoError(t, err)
		return twin.Snapshot != nil
	}
	if stored(held) || !stored(other) {
		t.Errorf("stored: %t of the locked unit, %t of the other", stored(held), stored(other))
	}
	if _, err := Store(t.Context(), db, []delivery.Observation{batch[0].Observation, batch[1].Observation}); !unavailable.Is(err) {
		t.Errorf("Store = %v, want the error of a server that is unavailable", err)
	}
	_ = tx.Rollback()
	if _, left, err := p.observe(t.Context(), left); err != nil || len(left) > 0 || !stored(held) {
		t.Errorf("after the lock: %v left, %v", left, err)
	}
}

// Instances hear the same presence, and meet at its unit: that is no reason for a warning.
func TestObserve_LogsPresenceOfAUnitThatIsHeldForLong(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	_, unit := storetest.AddVehicle(t, p.DB, 1)
	var log strings.Builder
	twins := New(Config{DB: p.DB, Redis: new(redis.DB), Vehicles: p.Fleet, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	tx := storetest.Begin(t, p.Pool)
	began := time.Now()
	tx.MustExec(`select from units where serial = $1 for update`, unit)
	presence := telematics.Presence{Status: telematics.Online, Session: "s", At: morning}
	for log.Len() == 0 && time.Since(began) < time.Minute {
		if seen, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: morning, Presence: &presence}}); err != nil ||
			!slices.Equal(seen.Locked, []telematics.Unit{unit}) {
			t.Fatalf("Observe = %+v, %v; want the unit locked", seen, err)
		}
	}
	if held := time.Since(began); held < heldLong || !strings.Contains(log.String(), "another transaction holds unit") {
		t.Errorf("logged after %v: %q", held, &log)
	}
}

// A deadlock is no fault of an observation: what meets one twice is stored later, and not dropped
// as refused.
func TestObserve_DeadlockMetTwiceDropsNothing(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	storetest.Exec(t, p.Pool, `
		create function deadlock() returns trigger language plpgsql as $$ begin raise exception 'deadlock detected' using errcode =
			'40P01'; end $$;
		create trigger deadlock before insert or update on snapshots for each row execute function deadlock()`)
	report := telematics.Report{At: morning, Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}
	batch := []observation{
		newObservation(delivery.Observation{Unit: unit, At: morning, Report: &report}),
		newObservation(delivery.Observation{Unit: "unknown-unit", At: morning}),
	}
	_, left, err := p.observe(t.Context(), batch)
	if !slices.ContainsFunc(left, func(o observation) bool { return o.Unit == unit }) || !unavailable.Is(err) {
		t.Errorf("observe: %v left, %v; want the unit left, and the error of a server that is unavailable", left, err)
	}
	state := dueState{vehicle: vehicle, redisState: redisState{unit: unit, snapshot: batch[0].readings, seen: morning}}
	done, waiting, err := p.storeDue(t.Context(), []dueState{state}, func(int64) base { return "1" })
	if len(done) > 0 || !slices.Equal(waiting, []telematics.VehicleID{vehicle}) || !unavailable.Is(err) {
		t.Errorf("storeDue = %+v, %v, %v; want the vehicle left", done, waiting, err)
	}
}
