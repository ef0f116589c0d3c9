package brokertest

import (
	"context"
	"reflect"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// VehicleRecord is a store of vehicles, and of their commands, as one instance of Motorpool uses
// it.
type VehicleRecord struct {
	broker.Vehicles
	Commands broker.Commands
	// Reads the vehicle through the instance.
	Record func(context.Context, telematics.VehicleID) (telematics.Twin, error)
	// Adds a vehicle with a unit.
	Vehicle func() telematics.VehicleID
	Fleet   Fleet
}

// VehiclesContract runs the contract of stores of vehicles.
func VehiclesContract(t *testing.T, open func(*testing.T) VehicleRecord) {
	for name, run := range map[string]func(*testing.T, VehicleRecord){
		"ResolveReturnsAVehicleAsRead":              readIsResolved,
		"ResolveReturnsAChangedVehicleOnceItIsRead": resolvedDoesNotChange,
		"StaleClaimRemovesTheVehicleFromTheCache":   staleClaimResolvesAgain,
		"MissingVehicleIsNotResolved":               missingIsNotResolved,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

func (r VehicleRecord) wantResolved(t *testing.T, want telematics.Twin) {
	t.Helper()
	got, err := r.resolve(t.Context(), want.ID)
	if err != nil || !reflect.DeepEqual(got.ForOrders(), want.ForOrders()) || got.Version == 0 {
		t.Errorf("Resolve: %v\n got %+v\nwant %+v", err, got, want)
	}
}

func (r VehicleRecord) resolve(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	twin, err := r.Resolve(ctx, id)
	if err != nil {
		return telematics.Twin{}, err
	}
	return *twin, nil
}

func readIsResolved(t *testing.T, r VehicleRecord) {
	for _, read := range []func(context.Context, telematics.VehicleID) (telematics.Twin, error){r.Record, r.Twin, r.resolve} {
		twin, err := read(t.Context(), r.Vehicle())
		require.NoError(t, err)
		r.wantResolved(t, twin)
	}
}

func resolvedDoesNotChange(t *testing.T, r VehicleRecord) {
	id := r.Vehicle()
	r.Fleet.Change(id, online)
	before, err := r.resolve(t.Context(), id)
	require.NoError(t, err)
	r.Fleet.Change(id, func(t *telematics.Twin) {
		t.AgencyID, t.Contact.Status, t.Contact.LastSeen = 2, telematics.Offline, instant.Add(time.Hour)
	})
	r.wantResolved(t, before)
	after, err := r.Record(t.Context(), id)
	if err != nil || after.AgencyID != 2 {
		t.Fatalf("Record = %+v, %v; want the changed record", after, err)
	}
	r.wantResolved(t, after)
	twin, err := r.Twin(t.Context(), id)
	if err != nil || twin.Version != after.Version || after.Version == before.Version {
		t.Errorf("version %d, then %d by Record and %d by Twin, %v", before.Version, after.Version, twin.Version, err)
	}
}

func staleClaimResolvesAgain(t *testing.T, r VehicleRecord) {
	id := r.Vehicle()
	r.Fleet.Change(id, online)
	before, err := r.resolve(t.Context(), id)
	require.NoError(t, err)
	r.Fleet.Change(id, func(t *telematics.Twin) { t.AgencyID = 2 })
	claim, err := r.Commands.Claim(t.Context(), ref(madeFrom(before, telematics.Lock)))
	if err != nil || !claim.Stale {
		t.Errorf("Claim = %+v, %v; want it to be stale", claim, err)
	}
	twin, err := r.resolve(t.Context(), id)
	if err != nil || twin.AgencyID != 2 {
		t.Errorf("Resolve = %+v, %v; want the changed record", twin, err)
	}
	if claim, err = r.Commands.Claim(t.Context(), ref(madeFrom(twin, telematics.Lock))); err != nil || !claim.Taken() {
		t.Errorf("Claim = %+v, %v", claim, err)
	}
}

func missingIsNotResolved(t *testing.T, r VehicleRecord) {
	id := r.Vehicle()
	r.Fleet.Remove(id)
	for range 2 {
		if twin, err := r.resolve(t.Context(), id); !reflect.DeepEqual(err, error(telematics.NoSuchVehicle(id))) {
			t.Errorf("Resolve = %+v, %v", twin, err)
		}
	}
}
