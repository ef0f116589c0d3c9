package store

import (
	"context"
	"slices"
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/telematics"
)

// withoutRun opens twins of one vehicle whose work the test does itself.
func withoutRun(t *testing.T, redis string) (twins *Twins, id telematics.VehicleID, unit telematics.Unit) {
	t.Helper()
	twins = NewTwins(TwinsConfig{Postgres: open(t, storetest.NewDatabase(t)), Redis: openRedis(t, redis)})
	id, unit = storetest.AddVehicle(t, twins.postgres.DB, 1)
	return twins, id, unit
}

func TestWhatRedisTookIsToldThoughItsAnswerWasLost(t *testing.T) {
	for name, redis := range map[string]string{"miniredis": storetest.StartMiniredis(t).URL(), "redis": storetest.StartRedis(t).URL()} {
		t.Run(name, func(t *testing.T) {
			twins, id, unit := withoutRun(t, redis)
			var told changesTold
			start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
			observed(t, twins, unit, statusAt(start, 1))
			twins.offer(t.Context(), told.tell)
			told.take()

			observed(t, twins, unit, statusAt(start, 2))
			unheard := twins.toRedis.begin()
			if _, err := twins.redis.offer(t.Context(), []offer{twins.propose(unheard[0]).offer}); err != nil {
				t.Fatal(err)
			}
			twins.toRedis.again(unheard) // as where the connection broke before the answer came
			twins.offer(t.Context(), told.tell)
			changes := told.take()
			if len(changes) != 1 || changes[0].Vehicle != id || changes[0].Fields[telematics.MileageKm].Value != 2.0 {
				t.Errorf("told %+v", changes)
			}
			twins.offer(t.Context(), told.tell)
			if again := told.take(); len(again) > 0 || twins.toRedis.size() > 0 {
				t.Errorf("told again: %+v", again)
			}
		})
	}
}

func TestARedisThatTakesNothingIsOfferedItAgain(t *testing.T) {
	twins, id, unit := withoutRun(t, storetest.StartRedis(t).URL())
	var told changesTold
	for _, limit := range []string{"1", "0"} { // bytes; none
		if err := twins.redis.db.Client.ConfigSet(t.Context(), "maxmemory", limit).Err(); err != nil {
			t.Fatal(err)
		}
		if limit == "1" {
			observed(t, twins, unit, statusAt(time.Now().Truncate(time.Millisecond), 7))
		}
		if reached := twins.offer(t.Context(), told.tell); reached != (limit == "0") {
			t.Errorf("with a maxmemory of %s it is reached: %v", limit, reached)
		}
	}
	if changes := told.take(); len(changes) != 1 || changes[0].Vehicle != id {
		t.Errorf("told %+v", changes)
	}
}

func TestWhatRedisHasForgottenIsMissedOnceAndOfferedAsAWhole(t *testing.T) {
	twins, id, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(start, 1))
	twins.offer(t.Context(), nil)
	if err := twins.redis.db.Client.FlushAll(t.Context()).Err(); err != nil { // or an hour of silence
		t.Fatal(err)
	}
	hurried := 0
	for range 3 {
		if _, err := twins.Twin(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		select {
		case <-twins.lost:
			hurried++
		default:
		}
	}
	if hurried != 1 {
		t.Errorf("postgres was hurried %d times", hurried)
	}
	observed(t, twins, unit, &telematics.Report{At: start.Add(time.Minute), Values: map[telematics.Field]any{telematics.MileageKm: 2.0}})
	twins.offer(t.Context(), nil)
	held, err := twins.redis.latestOf(t.Context(), []telematics.VehicleID{id})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sectionsIn(held[id].snapshot), []string{"location", "telemetry", "oem_data"}; !slices.Equal(got, want) {
		t.Errorf("redis has %v, want %v", got, want)
	}
}

func TestWhatRedisTakesLateIsToldToWhomTheVehicleIsOfThen(t *testing.T) {
	twins, _, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	observed(t, twins, unit, statusAt(time.Now().Truncate(time.Millisecond), 7)) // Redis is away
	for _, change := range []string{`insert into agencies (id, code, name) values (2, 'HAM', 'Alster Mobility')`, `update vehicles set agency_id = 2`} {
		if _, err := twins.postgres.Pool.Exec(change); err != nil {
			t.Fatal(err)
		}
	}
	twins.directory.known.Purge() // after directoryFor
	var told changesTold
	twins.offer(t.Context(), told.tell)
	if changes := told.take(); len(changes) != 1 || changes[0].Agency != 2 {
		t.Errorf("told %+v", changes)
	}
}

func TestWhatCouldNotBeOfferedIsOfferedAgain(t *testing.T) {
	server := storetest.StartRedis(t)
	twins, _, first := withoutRun(t, server.URL())
	units := []telematics.Unit{first}
	for id := range telematics.VehicleID(2) {
		_, unit := storetest.AddVehicle(t, twins.postgres.DB, id+2)
		units = append(units, unit)
	}
	var told changesTold
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	if err := server.Kill(); err != nil { // before anything of the vehicles was ever read
		t.Fatal(err)
	}
	for n := range 2 {
		for _, unit := range units {
			observed(t, twins, unit, statusAt(start, n))
		}
		if twins.offer(t.Context(), told.tell) {
			t.Error("a redis that is not there was reached")
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	storetest.Eventually(t, "redis is reached", func() bool { return twins.redis.db.Ready(t.Context()) == nil })
	if !twins.offer(t.Context(), told.tell) {
		t.Error("redis was not reached")
	}
	if changes := told.take(); len(changes) != len(units) {
		t.Errorf("%d vehicles were told of, want %d", len(changes), len(units))
	}
}

func TestWhatPostgresHadFirstIsToldAllTheSame(t *testing.T) {
	twins, id, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	var told changesTold
	observed(t, twins, unit, statusAt(time.Now().Truncate(time.Millisecond), 7))
	twins.write(t.Context(), told.tell, 1) // Redis is slow, or away
	twins.offer(t.Context(), told.tell)
	if changes := told.take(); len(changes) != 1 || changes[0].Vehicle != id || changes[0].Fields[telematics.MileageKm].Value != 7.0 {
		t.Errorf("told %+v", changes)
	}
}

func TestOneOfTwoTellsWhatPostgresHadFirst(t *testing.T) {
	start := time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	for name, test := range map[string]struct {
		before []*telematics.Report // that Redis has
		order  func(here, there *Twins) []*Twins
	}{
		"nothing before, who wrote it first":     {nil, func(here, there *Twins) []*Twins { return []*Twins{here, there} }},
		"nothing before, who wrote it last":      {nil, func(here, there *Twins) []*Twins { return []*Twins{there, here} }},
		"something before, who wrote it first":   {[]*telematics.Report{statusAt(start, 5)}, func(here, there *Twins) []*Twins { return []*Twins{here, there} }},
		"something before, who wrote it last":    {[]*telematics.Report{statusAt(start, 5)}, func(here, there *Twins) []*Twins { return []*Twins{there, here} }},
		"who wrote it ends before Redis had any": {nil, func(_, there *Twins) []*Twins { return []*Twins{there} }},
	} {
		t.Run(name, func(t *testing.T) {
			redis := storetest.StartMiniredis(t).URL()
			here, id, unit := withoutRun(t, redis)
			fresh := func() *Twins { return NewTwins(TwinsConfig{Postgres: here.postgres, Redis: openRedis(t, redis)}) }
			var told changesTold
			for _, report := range test.before {
				earlier := fresh()
				observed(t, earlier, unit, report)
				earlier.write(t.Context(), nil, 1)
				earlier.offer(t.Context(), nil)
			}
			there := fresh()
			observed(t, here, unit, statusAt(start.Add(time.Second), 7))
			here.write(t.Context(), told.tell, 1) // Redis is slow
			observed(t, there, unit, statusAt(start.Add(2*time.Second), 7))
			for _, twins := range test.order(here, there) {
				twins.offer(t.Context(), told.tell)
			}
			changes := told.take()
			if len(changes) != 1 || changes[0].Vehicle != id || changes[0].Fields[telematics.MileageKm].Value != 7.0 {
				t.Errorf("told %+v", changes)
			}
		})
	}
}

func TestWhatRedisForgotIsNoNews(t *testing.T) {
	redis := storetest.StartMiniredis(t).URL()
	here, _, unit := withoutRun(t, redis)
	start := time.Now().Add(-2 * latestFor).Truncate(time.Millisecond)
	observed(t, here, unit, statusAt(start, 7))
	here.write(t.Context(), nil, 1)
	here.offer(t.Context(), nil)
	if err := here.redis.db.Client.FlushAll(t.Context()).Err(); err != nil { // as after an hour of silence
		t.Fatal(err)
	}
	there := NewTwins(TwinsConfig{Postgres: here.postgres, Redis: openRedis(t, redis)})
	observed(t, there, unit, statusAt(time.Now().Truncate(time.Millisecond), 7))
	var told changesTold
	there.offer(t.Context(), told.tell)
	for _, change := range told.take() {
		if _, ok := change.Fields[telematics.MileageKm]; ok {
			t.Errorf("told again: %+v", change)
		}
	}
}

func TestWhatIsNotWrittenBeforeTheEndIsLeftForTheLastTime(t *testing.T) {
	twins, id, unit := withoutRun(t, storetest.StartMiniredis(t).URL())
	start := time.Now().Truncate(time.Millisecond)
	observed(t, twins, unit, statusAt(start, 7))
	ended, end := context.WithCancel(t.Context())
	end()
	twins.write(ended, nil, recordShare)
	if n := twins.toRecord.size(); n != 1 {
		t.Errorf("%d vehicles are owed to postgres", n)
	}
	twins.write(t.Context(), nil, 1)
	kept, err := twins.postgres.snapshots(t.Context(), []telematics.VehicleID{id})
	if err != nil || kept[id][telematics.MileageKm].Value != 7.0 || twins.toRecord.size() != 0 {
		t.Errorf("postgres has %v, %v", kept[id], err)
	}
}
