package brokertest

import (
	"reflect"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/telematics"
)

// VehicleRecord is one record of vehicles, as an instance of Motorpool has it in hand.
type VehicleRecord struct {
	broker.Vehicles
	Vehicle func() telematics.VehicleID // adds a vehicle with a unit
	Fleet   Fleet
}

// VehiclesContract runs what everybody promises who remembers records of vehicles.
func VehiclesContract(t *testing.T, open func(*testing.T) VehicleRecord) {
	for name, run := range map[string]func(*testing.T, VehicleRecord){
		"WhatWasReadIsRemembered":                    readIsRemembered,
		"WhatIsRememberedDoesNotChangeWithTheRecord": rememberedDoesNotChange,
		"WhatWasForgottenIsNotRemembered":            forgottenIsNotRemembered,
		"WhatIsNotThereIsNotRemembered":              nothingIsNotRemembered,
		"EveryDecisiveChangeIsAnotherVersion":        changesChangeTheVersion,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

func (r VehicleRecord) wantRemembered(t *testing.T, want telematics.Twin) {
	t.Helper()
	got, ok := r.Remembered(want.ID)
	if want := want.Recollection(); !ok || !reflect.DeepEqual(got, want) || got.Version == 0 {
		t.Errorf("remembered %t\n got %+v\nwant %+v", ok, got, want)
	}
}

func readIsRemembered(t *testing.T, r VehicleRecord) {
	for _, read := range []func() (telematics.Twin, error){
		func() (telematics.Twin, error) { return r.Record(t.Context(), r.Vehicle()) },
		func() (telematics.Twin, error) { return r.Twin(t.Context(), r.Vehicle()) },
	} {
		twin, err := read()
		if err != nil {
			t.Fatal(err)
		}
		r.wantRemembered(t, twin)
		r.Confirm(twin.Recollection())
		r.wantRemembered(t, twin)
	}
}

func rememberedDoesNotChange(t *testing.T, r VehicleRecord) {
	id := r.Vehicle()
	r.Fleet.Change(id, online)
	before, err := r.Record(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	r.Fleet.Change(id, func(t *telematics.Twin) {
		t.AgencyID, t.Contact.Status, t.Contact.LastSeen = 2, telematics.Offline, instant.Add(time.Hour)
	})
	r.wantRemembered(t, before)
	after, err := r.Record(t.Context(), id)
	if err != nil || after.AgencyID != 2 {
		t.Fatalf("Record = %+v, %v; want it as it is now", after, err)
	}
	r.wantRemembered(t, after)
}

func forgottenIsNotRemembered(t *testing.T, r VehicleRecord) {
	id := r.Vehicle()
	if _, err := r.Record(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		r.Forget(id)
		if twin, ok := r.Remembered(id); ok {
			t.Errorf("remembered %+v", twin)
		}
	}
}

func nothingIsNotRemembered(t *testing.T, r VehicleRecord) {
	id := r.Vehicle()
	r.Fleet.Remove(id)
	if _, err := r.Record(t.Context(), id); !reflect.DeepEqual(err, error(telematics.NoSuchVehicle(id))) {
		t.Errorf("Record = %v", err)
	}
	if twin, ok := r.Remembered(id); ok {
		t.Errorf("remembered %+v", twin)
	}
}

func changesChangeTheVersion(t *testing.T, r VehicleRecord) {
	for _, change := range Decisive {
		id := r.Vehicle()
		r.Fleet.Change(id, online)
		before := r.Fleet.record(t, id)
		r.Fleet.Change(id, change.Change)
		record, err := r.Record(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		twin, err := r.Twin(t.Context(), id)
		if err != nil || record.Version == before.Version || twin.Version != record.Version {
			t.Errorf("%s: version %d, and then %d, and %d with its state, %v", change.Name, before.Version, record.Version, twin.Version, err)
		}
	}
}
