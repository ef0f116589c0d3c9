package commands

import (
	"context"
	"testing"
	"time"

	"github.com/lib/pq"

	"motorpool/broker/brokertest"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

// Deleting a vehicle waits for a claim of its row, and then finds the command.
func TestAVehicleWithCommandsCannotBeDeleted(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	wantKept := func(err error) {
		t.Helper()
		if refusal := pq.As(err); refusal == nil || refusal.Constraint != "commands_vehicle_exists" {
			t.Errorf("deleting a vehicle that has commands: %v", err)
		}
	}
	claim := func(vehicle telematics.VehicleID) {
		t.Helper()
		if claim, err := p.Claim(t.Context(), brokertest.NewCommand(vehicle, telematics.Lock)); err != nil || !claim.Taken() {
			t.Fatalf("Claim = %+v, %v", claim, err)
		}
	}
	unused, _ := add()
	vehicle, _ := add()
	takeOut := func(vehicle telematics.VehicleID) error {
		_, err := p.Pool.Exec(`with unit as (update units set vehicle_id = null where vehicle_id = $1) select`, vehicle)
		if err == nil {
			_, err = p.Pool.Exec(`delete from vehicles where id = $1`, vehicle)
		}
		return err
	}
	if err := takeOut(unused); err != nil {
		t.Errorf("deleting a vehicle without commands: %v", err)
	}
	claim(vehicle)
	wantKept(takeOut(vehicle))

	// The claim of another command is open.
	raced, _ := add()
	claiming, err := p.Pool.BeginTxx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer claiming.Rollback() //nolint:errcheck // after a commit it has nothing to do
	c := brokertest.NewCommand(raced, telematics.Lock)
	statement := claimStatements[claimKind{one: true}]
	if _, err := claiming.Exec(statement, claimRow(&c)...); err != nil {
		t.Fatal(err)
	}
	deleted := make(chan error, 1)
	go func() { deleted <- takeOut(raced) }()
	storetest.WaitForLock(t, p.DB)
	if err := claiming.Commit(); err != nil {
		t.Fatal(err)
	}
	wantKept(<-deleted)
}

func TestOneVehicleCannotHaveANumberTwice(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	vehicle, _ := add()
	for _, action := range []telematics.Action{telematics.Lock, telematics.OpenTopCase} {
		if _, err := p.Claim(context.Background(), brokertest.NewCommand(vehicle, action)); err != nil {
			t.Fatal(err)
		}
	}
	_, err := p.Pool.Exec(`update commands set seq = (select max(seq) from commands)`)
	if refusal := pq.As(err); refusal == nil || refusal.Constraint != "commands_vehicle_seq" {
		t.Errorf("one number twice: %v", err)
	}
}

// Of a batch, what is for no vehicle spoils no other.
func TestAClaimForNoVehicleSpoilsNoOther(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	vehicle, _ := add()
	there, absent := brokertest.NewCommand(vehicle, telematics.Lock), brokertest.NewCommand(4711, telematics.Lock)
	stale := brokertest.NewCommand(4712, telematics.Lock)
	stale.Version = 1
	claims, err := p.claim(t.Context(), []*telematics.Command{&absent, &there, &stale})
	if err != nil || len(claims) != 3 {
		t.Fatalf("%+v, %v", claims, err)
	}
	if claims[0].err == nil || claims[0].Seq != 0 || !claims[1].Taken() || claims[1].err != nil || !claims[2].stale {
		t.Errorf("%+v", claims)
	}
}

// The database knows the actions and lanes, too: see "Add a control action" in
// docs/architecture.md.
func TestConstraints_AcceptEveryAction(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB) // with every capability
	for _, action := range append([]telematics.Action{telematics.ReportState}, telematics.ControlActions...) {
		id, _ := add()
		c := brokertest.NewCommand(id, action)
		if action == telematics.AttentionSignal {
			c.Attention = &telematics.Attention{Signal: telematics.Horn, Duration: time.Second}
		}
		if claim, err := p.Claim(t.Context(), c); err != nil || !claim.Taken() {
			t.Errorf("Claim of %s = %+v, %v: a new action needs a migration of the constraints that list actions and lanes", action, claim, err)
		}
	}
}
