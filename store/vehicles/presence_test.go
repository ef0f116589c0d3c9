package vehicles

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestAged_EachSilentVehicleIsReturnedToOneInstance(t *testing.T) {
	const fleet, instances = 60, 4
	address := storetest.NewDatabase(t)
	here := open(t, address)
	add := storetest.Vehicles(t, here.DB)
	now := time.Now()
	for range fleet {
		add()
	}
	online, err := here.Pool.Exec(
		`update units set status = 'online', session = 's', said_at = $1, changed_at = $1, last_seen = $1, announced = 'online'`,
		now,
	)
	require.NoError(t, err)
	if n, err := online.RowsAffected(); err != nil || n != fleet {
		t.Fatalf("%d vehicles are online, %v", n, err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{telematics.OnlineFor - time.Second, 0}, {telematics.OnlineFor + time.Second, fleet}, {telematics.OnlineFor + time.Minute, 0}} {
		at := now.Add(step.after)
		var mu sync.Mutex
		returned := map[telematics.VehicleID]int{}
		var asking sync.WaitGroup
		for range instances {
			p := open(t, address)
			asking.Go(func() {
				for range 5 { // rows that another instance has locked are found by a later call
					aged, err := p.agedAt(context.Background(), &at)
					assert.NoError(t, err, "agedAt")
					mu.Lock()
					for _, c := range aged {
						returned[c.Vehicle]++
						if c.Presence != telematics.Absent || c.Agency != 1 || c.Powertrain != telematics.Electric {
							t.Errorf("returned %+v, want an electric vehicle of agency 1 that is absent", c)
						}
					}
					mu.Unlock()
				}
			})
		}
		asking.Wait()
		assert.Equal(t, len(returned), step.want, "vehicles returned after %v", step.after)
		for id, times := range returned {
			if times != 1 {
				t.Errorf("vehicle %d was returned %d times, want once", id, times)
			}
		}
	}
}

func TestAged_ReturnsMoreThanABatch(t *testing.T) {
	const fleet = agedBatch + 1
	p := open(t, storetest.NewDatabase(t))
	file := FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}}}
	for id := range telematics.VehicleID(fleet) {
		file.Vehicles = append(file.Vehicles, telematics.Vehicle{
			ID: id + 1, AgencyID: 1, Unit: telematics.Unit(fmt.Sprintf("unit-%d", id)), Status: telematics.Available,
			Powertrain: telematics.Combustion, Features: []string{},
		})
	}
	_, err := p.Import(t.Context(), file)
	require.NoError(t, err)
	storetest.Exec(t, p.Pool, `update units set last_seen = now()`)
	if aged, err := p.Aged(t.Context()); err != nil || len(aged) != fleet {
		t.Errorf("%d vehicles returned, %v; want all", len(aged), err)
	}
}

func TestAged_ChecksAUnitWhenItIsDue(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	now := time.Now().Truncate(time.Microsecond)
	set := func(assignments string, args ...any) {
		t.Helper()
		storetest.Exec(t, p.Pool, `update units u set `+assignments, args...)
	}
	checkAt := func() (at *time.Time) {
		t.Helper()
		require.NoError(t, p.Pool.Get(&at, `select check_at from units where serial = $1`, unit))
		return at
	}
	aged := func(after time.Duration, want ...telematics.PresenceStatus) {
		t.Helper()
		at := now.Add(after)
		changes, err := p.agedAt(t.Context(), &at)
		if err != nil || len(changes) != len(want) || len(want) > 0 && (changes[0].Presence != want[0] || changes[0].Vehicle != id) {
			t.Errorf("after %v: changes %+v, %v; want %v", after, changes, err, want)
		}
	}
	aged(time.Minute)
	if at := checkAt(); at != nil {
		t.Errorf("a unit that was never seen is checked at %v, want never", at)
	}
	heard := `last_seen = $1, check_at = ` + CheckAfterReport
	set(heard, now)
	aged(time.Minute, telematics.Online)
	due := checkAt()
	if due == nil || !due.Equal(now.Add(telematics.OnlineFor+time.Millisecond)) {
		t.Errorf("an online unit is checked at %v, want when it becomes silent", due)
	}
	set(heard, now.Add(5*time.Minute))
	if at := checkAt(); at == nil || !at.Equal(*due) {
		t.Errorf("a report moved the check to %v, want it unchanged", at)
	}
	aged(telematics.OnlineFor + time.Second) // it is due, but was seen since
	if at := checkAt(); at == nil || !at.Equal(due.Add(5*time.Minute)) {
		t.Errorf("the next check is at %v, want 5 minutes later", at)
	}
	aged(telematics.OnlineFor+6*time.Minute, telematics.Absent)
	aged(telematics.OnlineFor + time.Hour)
	set(`vehicle_id = null, status = null, last_seen = null`)
	if at := checkAt(); at == nil {
		t.Error("a unit that was removed from its vehicle has no check")
	}
	aged(telematics.OnlineFor + 2*time.Hour)
	if at := checkAt(); at != nil {
		t.Errorf("a unit without a vehicle is checked at %v, want never", at)
	}
}

func TestUnits_PagesHaveEachUnitOfAVehicleOnce(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	for range 7 {
		add()
	}
	storetest.Exec(t, p.Pool, `insert into units (serial) values ('in-stock')`)
	seen := map[telematics.Unit]int{}
	for after, pages := telematics.Unit(""), 0; ; pages++ {
		page, err := p.Units(t.Context(), after, 3)
		require.NoError(t, err)
		if len(page) == 0 {
			assert.Equal(t, pages, 3, "pages")
			break
		}
		for _, unit := range page {
			seen[unit]++
		}
		after = page[len(page)-1]
	}
	if len(seen) != 7 || seen["in-stock"] > 0 {
		t.Errorf("read %v, want the 7 units of vehicles", seen)
	}
	for unit, n := range seen {
		if n != 1 {
			t.Errorf("unit %s was read %d times, want once", unit, n)
		}
	}
}
