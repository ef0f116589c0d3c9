package commands

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// maxExact is the greatest number that a JSON parser of a unit may read as a float without losing a
// digit.
const maxExact = 1 << 53

// claimSettled claims and settles a command of a vehicle, and returns the command's number.
func claimSettled(t *testing.T, p *instance, vehicle telematics.VehicleID) int64 {
	t.Helper()
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	claim, err := p.Claim(t.Context(), c)
	if err != nil || !claim.Taken() {
		t.Fatalf("Claim = %+v, %v", claim, err)
	}
	_, ok, err := p.Settle(t.Context(), delivery.Settlement{Command: c.ID, State: telematics.Succeeded, At: time.Now()})
	if err != nil || !ok {
		t.Fatalf("Settle = %v, %v; want it applied", ok, err)
	}
	return claim.Seq
}

func TestCommandNumbers_GrowByOneWhileTheServerRuns(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	first := claimSettled(t, p, 1)
	if now := time.Now().UnixMicro(); first > now || first < now-int64(time.Minute/time.Microsecond) || first >= maxExact {
		t.Errorf("the first number is %d, want about the time in microseconds, %d", first, now)
	}
	for i := range int64(3) {
		if seq := claimSettled(t, p, 1); seq != first+i+1 {
			t.Errorf("number %d follows %d, want it one greater", seq, first+i)
		}
	}
}

// A restored copy, or a promoted standby that was behind, has an earlier value of the sequence.
func TestCommandNumbers_GrowAfterTheServerLostSome(t *testing.T) {
	t.Parallel()
	server := storetest.StartPostgres(t, false)
	p := open(t, server.Database(storetest.Template))
	storetest.AddVehicle(t, p.DB, 1)
	last := claimSettled(t, p, 1)
	// The second value is that of a clock which was ahead: the sequence is ahead of the present
	// time, and is still raised.
	for _, lost := range []string{`setval('commands_seq', 1)`, `setval('commands_seq', 4000000000000000)`} {
		storetest.Exec(t, p.Pool, `select `+lost)
		restart(t, p, server.Postgres)
		seq := claimSettled(t, p, 1)
		if seq <= last || seq >= maxExact {
			t.Errorf("after %s, number %d follows %d", lost, seq, last)
		}
		last = seq
	}
}

// A sequence created by the restore of a dump is a new one, on the same server.
func TestCommandNumbers_GrowAfterTheRestoreOfADump(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	last := claimSettled(t, p, 1)
	storetest.Exec(t, p.Pool, `alter sequence commands_seq owned by none; drop sequence commands_seq; create sequence commands_seq as
		bigint cache 1; grant usage on sequence commands_seq to public`)
	if seq := claimSettled(t, p, 1); seq <= last {
		t.Errorf("after the restore, number %d follows %d", seq, last)
	}
}

func TestCommandNumbers_AreRaisedOnceByConcurrentClaims(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	const vehicles = 12
	for id := range telematics.VehicleID(vehicles) {
		storetest.AddVehicle(t, p.DB, id+1)
	}
	seqs := make([]int64, vehicles)
	var claims sync.WaitGroup
	for i := range seqs {
		claims.Go(func() { // without the batcher, so that the statements are concurrent
			c := brokertest.NewCommand(telematics.VehicleID(i+1), telematics.Lock)
			if claim, err := p.claim(context.Background(), []*telematics.Command{&c}); err != nil || len(claim) != 1 {
				t.Errorf("claim = %+v, %v", claim, err)
			} else {
				seqs[i] = claim[0].Seq
			}
		})
	}
	claims.Wait()
	given := map[int64]bool{}
	for _, seq := range seqs {
		given[seq] = true
		if seq-seqs[0] > vehicles || seqs[0]-seq > vehicles {
			t.Errorf("numbers %v: the sequence was raised more than once", seqs)
			break
		}
	}
	if len(given) != vehicles {
		t.Errorf("numbers %v, want each once", seqs)
	}
}

func TestCommandNumbers_RaiseIsIdempotentWithoutForce(t *testing.T) {
	p := openAsOwner(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	if n, err := p.Read(t.Context()); err != nil || n.Last != 0 || n.Current || !n.RaisedAt.IsZero() {
		t.Errorf("Read of a new database = %+v, %v; want no number", n, err)
	}
	if _, after, err := p.Raise(t.Context(), false); err != nil || after == 0 {
		t.Errorf("Raise = %d, %v; want it raised", after, err)
	}
	if _, after, err := p.Raise(t.Context(), false); err != nil || after != 0 {
		t.Errorf("Raise repeated = %d, %v; want it not raised", after, err)
	}
	last := claimSettled(t, p, 1)
	planned, err := p.Read(t.Context())
	if err != nil || planned.Last != last || !planned.Current || planned.RaisedAt.IsZero() || planned.Next <= last {
		t.Errorf("Read = %+v, %v; the last number was %d", planned, err, last)
	}
	_, after, err := p.Raise(t.Context(), true)
	if err != nil || after < planned.Next {
		t.Errorf("Raise with force = %d, %v; want at least %d", after, err, planned.Next)
	}
	if seq := claimSettled(t, p, 1); seq != after+1 {
		t.Errorf("number %d follows the raise to %d", seq, after)
	}
}

// The numbers are also raised for commands of a version without the raise.
func TestCommandNumbers_AreRaisedForEachInsert(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	storetest.AddVehicle(t, p.DB, 1)
	var seq int64
	if err := p.Pool.Get(&seq, `
		insert into commands (id, vehicle_id, agency_id, unit, action, lane, instance, actor_subject, actor_role, requested_at, deadline)
		values (gen_random_uuid(), 1, 1, 'unit-1', 'lock', 'access', 'i', 's', 'admin', now(),
			now()) returning seq`); err != nil || seq < 1_000_000_000_000_000 {
		t.Errorf("number %d, %v; want a raised one", seq, err)
	}
}

// restart kills Postgres, starts it again, and returns when it accepts connections.
func restart(t *testing.T, p *instance, server *devstack.Postgres) {
	t.Helper()
	require.NoError(t, errors.Join(server.Kill(), server.Restart()))
	for end := time.Now().Add(storetest.Patience); p.Ping(t.Context()) != nil; {
		if time.Now().After(end) {
			t.Fatal("Postgres accepts no connections after its restart")
		}
		time.Sleep(50 * time.Millisecond)
	}
}
