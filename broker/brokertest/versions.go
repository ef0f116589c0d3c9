package brokertest

import (
	"context"
	"reflect"
	"sync"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Fleet reads and changes the stored vehicles, as another client of the store does.
type Fleet struct {
	// Reads the current record.
	Record func(context.Context, telematics.VehicleID) (telematics.Twin, error)
	Change func(telematics.VehicleID, func(*telematics.Twin))
	Remove func(telematics.VehicleID)
}

func (f Fleet) record(t *testing.T, id telematics.VehicleID) telematics.Twin {
	t.Helper()
	twin, err := f.Record(t.Context(), id)
	if err != nil || twin.Version == 0 {
		t.Fatalf("Record = %+v, %v; want a vehicle with a version", twin, err)
	}
	return twin
}

// RecordChange is a named change of a vehicle's record.
type RecordChange struct {
	Name   string
	Change func(*telematics.Twin)
}

// Decisive are changes of what an order depends on.
var Decisive = []RecordChange{
	{"another agency", func(t *telematics.Twin) { t.AgencyID = 2 }},
	{"another unit", func(t *telematics.Twin) { t.Unit += "-new" }},
	{"another protocol", func(t *telematics.Twin) { t.Protocol = "morse" }},
	{"another powertrain", func(t *telematics.Twin) { t.Powertrain = telematics.PlugInHybrid }},
	{"fewer actions", func(t *telematics.Twin) { t.Actions = []telematics.Action{telematics.Lock} }},
	{"fewer declared actions", func(t *telematics.Twin) { t.Contact.Actions = []telematics.Action{telematics.Lock} }},
	{"no declared actions", func(t *telematics.Twin) { t.Contact.Actions = []telematics.Action{} }},
	{"an offline unit", func(t *telematics.Twin) { t.Contact.Status = telematics.Offline }},
	{"a unit in standby", func(t *telematics.Twin) { t.Contact.Status = telematics.Standby }},
	{"another session", func(t *telematics.Twin) { t.Contact.Session = "two" }},
	{"a later presence", func(t *telematics.Twin) { t.Contact.ChangedAt = instant.Add(time.Microsecond) }},
}

// online sets a contact that each of Decisive changes.
func online(t *telematics.Twin) {
	t.Contact.Status, t.Contact.Session, t.Contact.ChangedAt, t.Contact.LastSeen = telematics.Online, "one", instant, instant
}

// onlineVehicle adds a vehicle whose unit is online.
func (r CommandRecord) onlineVehicle(t *testing.T) telematics.Twin {
	t.Helper()
	id := r.Vehicle()
	r.Fleet.Change(id, online)
	return r.Fleet.record(t, id)
}

// madeFrom returns a command that was accepted by a record.
func madeFrom(twin telematics.Twin, action telematics.Action) telematics.Command {
	c := NewCommand(twin.ID, action)
	c.Agency, c.Unit, c.Version = twin.AgencyID, twin.Unit, twin.Version
	return c
}

func currentClaimSucceeds(t *testing.T, r CommandRecord) {
	twin := r.onlineVehicle(t)
	for _, action := range []telematics.Action{telematics.Lock, telematics.OpenTopCase} {
		c := r.claim(t, madeFrom(twin, action))
		c.Version = 0
		wantCommand(t, r.open(t, c.ID), c)
	}
	r.Fleet.Change(twin.ID, func(t *telematics.Twin) { // of nothing that an order depends on
		t.Contact.LastSeen, t.Contact.SaidAt = instant.Add(time.Hour), instant.Add(time.Hour)
		t.Contact.Gap, t.Contact.Firmware = time.Minute, "4.2.1"
		t.Status, t.Plate = telematics.InUse, "M-IM 2"
	})
	if again := r.Fleet.record(t, twin.ID); again.Version != twin.Version {
		t.Errorf("version %d, and then %d", twin.Version, again.Version)
	}
	r.claim(t, madeFrom(twin, telematics.AttentionSignal))
}

// wantStale claims a command with an outdated version of its vehicle, and fails unless the claim is
// stale.
func (r CommandRecord) wantStale(t *testing.T, c telematics.Command) {
	t.Helper()
	claim, err := r.Here.Claim(t.Context(), &c)
	if err != nil || !reflect.DeepEqual(claim, delivery.Claim{Stale: true}) {
		t.Errorf("Claim = %+v, %v; want it to be stale", claim, err)
	}
}

func staleClaimWritesNothing(t *testing.T, r CommandRecord) {
	changes := append(
		[]RecordChange{
			{"removed", nil},
			{"without a unit", func(t *telematics.Twin) { t.Unit, t.Protocol, t.Contact = "", "", telematics.Contact{} }},
		},
		Decisive...)
	for _, change := range changes {
		t.Run(change.Name, func(t *testing.T) {
			twin := r.onlineVehicle(t)
			k := NewKey()
			c := r.keyed(k)
			c.Vehicle, c.Unit, c.Version = twin.ID, twin.Unit, twin.Version
			if change.Change == nil {
				r.Fleet.Remove(twin.ID)
			} else {
				r.Fleet.Change(twin.ID, change.Change)
			}
			r.wantStale(t, c)
			if made, found := r.findByKey(t, k); found {
				t.Errorf("FindByKey = %+v, want none", made)
			}
			if change.Change == nil {
				return
			}
			now := r.Fleet.record(t, twin.ID)
			if c.Unit, c.Version = now.Unit, now.Version; now.Unit == "" {
				c.Version = 0 // no order for it is accepted
			}
			r.claim(t, c) // lane, key and id are free
			r.settle(t, settlement(c, telematics.Expired))
			c = madeFrom(twin, telematics.Lock)
			c.Version = 0
			r.claim(t, c) // without a version, the record is not checked
		})
	}
}

func staleClaimOfOccupiedLane(t *testing.T, r CommandRecord) {
	twin := r.onlineVehicle(t)
	occupant := r.claim(t, madeFrom(twin, telematics.Lock))
	claim, err := r.There.Claim(t.Context(), ref(madeFrom(twin, telematics.Unlock)))
	if err != nil || claim.Occupant == nil || claim.Occupant.ID != occupant.ID {
		t.Errorf("with the current version: Claim = %+v, %v; want the occupant", claim, err)
	}
	r.Fleet.Change(twin.ID, func(t *telematics.Twin) { t.AgencyID = 2 })
	r.wantStale(t, madeFrom(twin, telematics.Unlock))
	r.wantStale(t, madeFrom(twin, telematics.OpenTopCase))
}

// Concurrent claims may share a statement.
func staleClaimFailsNoOther(t *testing.T, r CommandRecord) {
	var claims sync.WaitGroup
	for i := range 30 {
		twin := r.onlineVehicle(t)
		c, stale := madeFrom(twin, telematics.Lock), i%3 == 0
		if stale {
			r.Fleet.Change(twin.ID, func(t *telematics.Twin) { t.AgencyID = 2 })
		}
		if i%3 == 1 {
			c.Version = 0
		}
		claims.Go(func() {
			claim, err := r.Here.Claim(t.Context(), &c)
			if err != nil || claim.Stale != stale || claim.Taken() == stale {
				t.Errorf("Claim = %+v, %v; stale: %t", claim, err, stale)
			}
		})
	}
	claims.Wait()
}
