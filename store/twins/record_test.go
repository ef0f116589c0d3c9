package twins

import (
	"reflect"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// A cached record does not say to which vehicle a unit belongs before a claim has found it to be
// true.
func TestConfirm_RefreshesOwnerOfUnit(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	id, unit := storetest.AddVehicle(t, twins.stored.DB, 1)
	_, err := twins.Record(t.Context(), id)
	require.NoError(t, err)
	owned, ok := twins.owners.find(unit)
	if !ok {
		t.Error("a record that was read does not give the owner of its unit")
	}
	twins.owners.cached.Purge() // as expiry does
	twin, err := twins.Resolve(t.Context(), id)
	require.NoError(t, err)
	if _, cached := twins.owners.findAnswering(unit, id); cached {
		t.Error("the cached record was used before it was confirmed")
	}
	if twins.Confirm(id, twin.Version+1); twins.owners.cached.Len() > 0 {
		t.Error("confirmed by another version")
	}
	twins.Confirm(id, twin.Version)
	if again, ok := twins.owners.find(unit); !ok || !reflect.DeepEqual(again, owned) {
		t.Errorf("the owner is %+v, want %+v", again, owned)
	}
}

// A vehicle takes its time to answer. Its unit's owner is cached for that long, and the agency that
// gets the event is looked up anew.
func TestOwners_AnswerFindsTheRequestedVehicleForAsLongAsItMayTake(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	asked, unit := storetest.AddVehicle(t, twins.stored.DB, 1)
	other, _ := storetest.AddVehicle(t, twins.stored.DB, 1)
	_, err := twins.Record(t.Context(), asked)
	require.NoError(t, err)
	age := func(by time.Duration) {
		aged, _ := twins.owners.cached.Peek(unit)
		aged.until = time.Now().Add(-by)
		twins.owners.cached.Add(unit, aged)
	}
	age(telematics.MaxBudget - 10*time.Second)
	for vehicle, want := range map[telematics.VehicleID]bool{0: false, other: false, asked: true} {
		if owner, cached := twins.owners.findAnswering(unit, vehicle); cached != want || cached && owner.vehicle != asked {
			t.Errorf("unit of vehicle %d, requested as %d: cached %v, want %v", asked, vehicle, cached, want)
		}
	}
	age(telematics.MaxBudget)
	if _, cached := twins.owners.findAnswering(unit, asked); cached {
		t.Error("the owner is cached for longer than a caller waits")
	}
}

func TestRecords_CacheIsBounded(t *testing.T) {
	twins := newTwins(open(t, storetest.NewDatabase(t)), new(redis.DB), 0)
	for id := range telematics.VehicleID(cachedRecords + 10) {
		twins.cacheRecord(&telematics.Twin{Vehicle: telematics.Vehicle{ID: id}, Version: 1})
	}
	assert.Equal(t, twins.records.Len(), cachedRecords, "cached")
	if _, ok := twins.records.Get(0); ok {
		t.Error("the one that was not used for longest is still cached")
	}
}

func TestTwinsBelongs_ReadsTheRecordUnlessTheCachedOneIsTheAgencys(t *testing.T) {
	twins := twinsAt(t, storetest.NewDatabase(t), storetest.StartMiniredis(t).URL())
	storetest.Exec(t, twins.stored.Pool, `insert into agencies (id, code, name) values (2, 'HAM', 'Alster Mobility')`)
	id, _ := storetest.AddVehicle(t, twins.stored.DB, 1)
	belongs := func(agency telematics.AgencyID, want bool) {
		t.Helper()
		if got, err := twins.Belongs(t.Context(), id, agency); err != nil || got != want {
			t.Errorf("agency %d: %v %v, want %v", agency, got, err, want)
		}
	}
	belongs(1, true)
	belongs(2, false)
	storetest.Exec(t, twins.stored.Pool, `update vehicles set agency_id = 2 where id = $1`, id)
	belongs(1, true) // until an order, or a request of another agency, reads the record
	belongs(2, true)
	belongs(1, false)
	if got, err := twins.Belongs(t.Context(), 1<<40, 1); got || err == nil {
		t.Errorf("no such vehicle: %v %v", got, err)
	}
}
