package commands

import (
	"context"
	"testing"

	"github.com/lib/pq"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// The deletion of a vehicle waits for a claim that has locked its row, and then fails because of
// the command.
func TestClaim_VehicleWithCommandsCannotBeDeleted(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	wantKept := func(err error) {
		t.Helper()
		if refusal := pq.As(err); refusal == nil || refusal.Constraint != "commands_vehicle_exists" {
			t.Errorf("deleting a vehicle with commands: %v, want a violation of commands_vehicle_exists", err)
		}
	}
	claim := func(vehicle telematics.VehicleID) {
		t.Helper()
		p.mustClaim(t, brokertest.NewCommand(vehicle, telematics.Lock))
	}
	unused, _ := add()
	vehicle, _ := add()
	deleteVehicle := func(vehicle telematics.VehicleID) error {
		_, err := p.owner().Pool.Exec(`with unit as (update units set vehicle_id = null where vehicle_id = $1) select`, vehicle)
		if err == nil {
			_, err = p.owner().Pool.Exec(`delete from vehicles where id = $1`, vehicle)
		}
		return err
	}
	assert.NoError(t, deleteVehicle(unused), "deleting a vehicle without commands")
	claim(vehicle)
	wantKept(deleteVehicle(vehicle))

	// The transaction that claims another command is still open.
	raced, _ := add()
	claiming := storetest.Begin(t, p.Pool)
	c := brokertest.NewCommand(raced, telematics.Lock)
	statement := claimStatements[claimKind{one: true}]
	storetest.Exec(t, claiming, statement, claimRow(&c)...)
	deleted := make(chan error, 1)
	go func() { deleted <- deleteVehicle(raced) }()
	storetest.WaitForLock(t, p.DB)
	require.NoError(t, claiming.Commit())
	wantKept(<-deleted)
}

func TestClaim_NumberIsUniqueForAVehicle(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	vehicle, _ := add()
	for _, action := range []telematics.Action{telematics.Lock, telematics.OpenTopCase} {
		_, err := p.Claim(context.Background(), brokertest.NewCommand(vehicle, action))
		require.NoError(t, err)
	}
	_, err := p.Pool.Exec(`update commands set seq = (select max(seq) from commands)`)
	if refusal := pq.As(err); refusal == nil || refusal.Constraint != "commands_vehicle_seq" {
		t.Errorf("a second command with the same number: %v, want a violation of commands_vehicle_seq", err)
	}
}

// In a batch, a claim for a vehicle that does not exist fails alone.
func TestClaim_ForAnUnknownVehicleFailsAlone(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	vehicle, _ := add()
	there, absent := brokertest.NewCommand(vehicle, telematics.Lock), brokertest.NewCommand(4711, telematics.Lock)
	stale := brokertest.NewCommand(4712, telematics.Lock)
	stale.Version = 1
	claims, err := p.claim(t.Context(), []*telematics.Command{&absent, &there, &stale})
	if err != nil || len(claims) != 3 {
		t.Fatalf("claims %+v, %v; want 3", claims, err)
	}
	if claims[0].err == nil || claims[0].Seq != 0 || !claims[1].Taken() || claims[1].err != nil || !claims[2].Stale {
		t.Errorf("claims %+v, want an error, a taken one, and a stale one", claims)
	}
}
