package commands

import (
	"context"
	"fmt"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Claims that share a statement are decided separately.
func TestClaim_StaleOneInABatchIsDecidedSeparately(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	fleet, add := fleetIn(t, p), storetest.Vehicles(t, p.DB)
	by := func(twin telematics.Twin, action telematics.Action) telematics.Command {
		c := brokertest.NewCommand(twin.ID, action)
		c.Version = twin.Version
		return c
	}
	record := func() telematics.Twin {
		id, _ := add()
		twin, err := p.Record(t.Context(), id)
		require.NoError(t, err)
		return *twin
	}
	same, moved, taken, gone := record(), record(), record(), record()
	fleet.Change(moved.ID, func(twin *telematics.Twin) { twin.AgencyID = 2 })
	fleet.Remove(gone.ID)
	occupant := by(taken, telematics.Lock)
	p.mustClaim(t, occupant)
	unchecked := by(moved, telematics.OpenTopCase)
	unchecked.Version = 0
	keyed := by(moved, telematics.AttentionSignal)
	keyed.Key = brokertest.NewKey()
	batch := []telematics.Command{
		by(same, telematics.Lock), by(moved, telematics.Lock), by(taken, telematics.Unlock), unchecked, by(gone, telematics.Lock),
		by(same, telematics.OpenTopCase), keyed,
	}
	claims, err := p.claim(t.Context(), pointers(batch))
	require.NoError(t, err)
	for i, want := range []string{"taken", "stale", "occupied", "taken", "stale", "taken", "stale"} {
		claim := claims[i]
		occupied := claim.Occupant != nil && claim.Occupant.ID == occupant.ID
		if claim.Taken() != (want == "taken") || claim.Stale != (want == "stale") || occupied != (want == "occupied") {
			t.Errorf("claim %d: %+v, want %s", i, claim, want)
		}
	}
	var written []telematics.CommandID
	if err := p.Pool.Select(&written, `select id from commands order by seq`); err != nil || len(written) != 4 {
		t.Errorf("written %v, %v; want the taken ones", written, err)
	}
	if made, found, err := p.FindByKey(t.Context(), *keyed.Key); err != nil || found {
		t.Errorf("the key of a stale claim is found: %+v, %v", made, err)
	}
}

// A claim of a locked vehicle decides nothing by what it saw before the lock.
func TestClaim_IsCheckedAfterLockingItsVehicle(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	fleetIn(t, p)
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	twin, err := p.Record(t.Context(), id)
	require.NoError(t, err)
	other := storetest.Begin(t, p.Pool)
	storetest.Exec(t, other, `update vehicles set agency_id = 2 where id = $1`, id)
	c := brokertest.NewCommand(id, telematics.Lock)
	c.Version = twin.Version
	if claims, err := p.claim(t.Context(), []*telematics.Command{&c}); err != nil || !claims[0].locked || claims[0].Stale {
		t.Errorf("claim = %+v, %v; want it locked", claims, err)
	}
	require.NoError(t, other.Commit())
	if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Stale {
		t.Errorf("Claim = %+v, %v; want it to be stale", claim, err)
	}
}

// Changes of presence make a cached record stale.
func TestClaim_PresenceChangeMakesItStale(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	twins := twinsOf(t, p)
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	begin := time.Now().Add(-time.Hour)
	observe := func(status telematics.PresenceStatus, after time.Duration) {
		t.Helper()
		at := begin.Add(after)
		presence := telematics.Presence{Status: status, Session: "one", At: at}
		_, err := twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: at, Presence: &presence}})
		require.NoError(t, err)
	}
	isStale := func() bool {
		t.Helper()
		twin, err := twins.Resolve(t.Context(), id) // from the cache
		require.NoError(t, err)
		c := brokertest.NewCommand(id, telematics.Lock)
		c.Version = twin.Version
		claim, err := p.Claim(t.Context(), c)
		if claim.Stale {
			return true
		}
		if err != nil || !claim.Taken() {
			t.Fatalf("Claim = %+v, %v", claim, err)
		}
		if _, _, err = p.Settle(t.Context(), delivery.Settlement{Command: c.ID, State: telematics.Expired, At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		return false
	}
	observe(telematics.Online, 0)
	_, err := twins.Record(t.Context(), id)
	require.NoError(t, err)
	observe(telematics.Online, time.Minute) // repeated, in the same session
	report := telematics.Report{At: begin, Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}
	_, err = twins.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Report: &report}})
	require.NoError(t, err)
	storetest.Eventually(t, "postgres has the report", func() bool {
		twin, err := p.Twin(t.Context(), id)
		return err == nil && twin.Snapshot != nil
	})
	if isStale() {
		t.Error("stale after repeated presence and a report")
	}
	observe(telematics.Offline, 2*time.Minute)
	if !isStale() {
		t.Error("not stale after a last will")
	}
	_, err = twins.Twin(t.Context(), id)
	require.NoError(t, err)
	if twin, _ := twins.Resolve(t.Context(), id); twin.Contact.Status != telematics.Offline {
		t.Errorf("after a read, the cached contact is %+v, want offline", twin.Contact)
	}
	require.NoError(t, p.ForgetContacts(t.Context()))
	if !isStale() {
		t.Error("not stale after all contacts were forgotten")
	}
}

// A failed claim does not confirm the cached record that it was accepted with.
func TestClaim_FailureRemovesCachedRecord(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	twins := twinsOf(t, p)
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	twin, err := twins.Resolve(t.Context(), id)
	require.NoError(t, err)
	c := brokertest.NewCommand(id, telematics.Lock)
	c.Version = twin.Version
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(p.DB, twins).Claim(ended, &c); err == nil {
		t.Fatal("a claim with an ended context succeeded")
	}
	if _, err := twins.Resolve(ended, id); err == nil {
		t.Error("the record is still cached")
	}
}

// confirmations records the calls of a cache.
type confirmations []string

func (c *confirmations) Confirm(id telematics.VehicleID, version int64) {
	*c = append(*c, fmt.Sprint("confirm ", id, " ", version))
}
func (c *confirmations) Forget(id telematics.VehicleID) { *c = append(*c, fmt.Sprint("forget ", id)) }

func TestClaim_ConfirmsACurrentRecordAndForgetsAStaleOne(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, _ := storetest.AddVehicle(t, p.DB, 1)
	twin, err := p.Record(t.Context(), id)
	require.NoError(t, err)
	var cache confirmations
	store := New(p.DB, &cache)
	current, outdated := brokertest.NewCommand(id, telematics.Lock), brokertest.NewCommand(id, telematics.OpenTopCase)
	current.Version, outdated.Version = twin.Version, twin.Version+1
	for _, c := range []*telematics.Command{&current, &outdated} {
		if claim, err := store.Claim(t.Context(), c); err != nil || claim.Taken() == claim.Stale || claim.Stale != (c == &outdated) {
			t.Errorf("Claim = %+v, %v", claim, err)
		}
	}
	outdated.Version = 0 // accepted again
	if claim, err := store.Claim(t.Context(), &outdated); err != nil || !claim.Taken() {
		t.Errorf("Claim = %+v, %v", claim, err)
	}
	want := confirmations{fmt.Sprint("confirm ", id, " ", twin.Version), fmt.Sprint("forget ", id)}
	assert.EqualSlices(t, cache, want, "calls of the cache")
}

func pointers[T any](items []T) []*T {
	list := make([]*T, len(items))
	for i := range items {
		list[i] = &items[i]
	}
	return list
}
