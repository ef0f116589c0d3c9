package commands

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/broker/brokertest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/idempotency"
	"motorpool/store/storetest"
	"motorpool/store/twins"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// All operations that take locks, on the same few rows, in random order, by two instances.
func TestLocks_NoOperationsDeadlock(t *testing.T) {
	address := storetest.NewDatabase(t)
	instances := []*instance{open(t, address), open(t, address)}
	watch := open(t, address)
	add := storetest.Vehicles(t, watch.DB)
	const fleet = 12
	var units []telematics.Unit
	for range fleet {
		_, unit := add()
		units = append(units, unit)
	}
	file := vehicles.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}}}
	for i, unit := range units {
		file.Vehicles = append(file.Vehicles, telematics.Vehicle{
			ID: telematics.VehicleID(i + 1), AgencyID: 1, Unit: unit, Status: telematics.Available, Powertrain: telematics.Electric,
		})
	}
	keys := []*telematics.IdempotencyKey{nil, nil} // keys of commands without one
	for range 400 {
		keys = append(keys, brokertest.NewKey())
	}
	var settlements, observations, imports atomic.Int32
	enough := func() bool { return settlements.Load() >= 100 && observations.Load() >= 20 && imports.Load() >= 4 }
	ctx := storetest.ForAtLeast(t, 2*time.Second, enough)
	var wg sync.WaitGroup
	for _, p := range instances {
		for range 12 {
			wg.Go(func() {
				for ctx.Err() == nil {
					action := telematics.ControlActions[rand.IntN(len(telematics.ControlActions))]
					c := brokertest.NewCommand(telematics.VehicleID(rand.IntN(fleet)+1), action)
					c.Key = keys[rand.IntN(len(keys))]
					claim, err := p.Claim(context.Background(), c)
					assert.NoError(t, err, "Claim")
					if claim.Occupant != nil {
						c = *claim.Occupant
					}
					assert.NoError(t, p.StoreProgress(context.Background(), []delivery.Note{noteOf(c.ID)}), "StoreProgress")
					s := delivery.Settlement{
						Command: c.ID,
						State:   []telematics.State{telematics.Succeeded, telematics.Rejected}[rand.IntN(2)],
						At:      time.Now(),
					}
					if _, _, err := p.Settle(context.Background(), s); err != nil {
						t.Errorf("Settle: %v", err)
					}
					settlements.Add(1)
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				some := keys[2+rand.IntN(100)].Key
				if _, err := p.Pool.Exec(`update idempotency_keys set made_at = made_at - interval '2 days' where key = $1`,
					some); err != nil {
					t.Errorf("making a key older: %v", err)
				}
				if _, err := idempotency.Forget(context.Background(), p.DB, 10); err != nil {
					t.Errorf("Forget: %v", err)
				}
			}
		})
		// Batches in an order that the batcher would not use.
		wg.Go(func() {
			for ctx.Err() == nil {
				open, err := p.Overdue(context.Background(), time.Now().AddDate(1, 0, 0), 100)
				assert.NoError(t, err, "Overdue")
				rand.Shuffle(len(open), func(i, j int) { open[i], open[j] = open[j], open[i] })
				batch := make([]delivery.Settlement, len(open))
				for i, c := range open {
					batch[i] = delivery.Settlement{Command: c.ID, State: telematics.Unknown, At: time.Now()}
				}
				if len(batch) == 0 {
					continue
				}
				if _, err := p.settle(context.Background(), pointers(batch)); err != nil {
					t.Errorf("settle: %v", err)
				}
			}
		})
		for range 3 {
			wg.Go(func() {
				for ctx.Err() == nil {
					seen := make([]delivery.Observation, fleet)
					for i, at := range rand.Perm(fleet) {
						report := telematics.Report{At: time.Now(), Values: map[telematics.Field]any{telematics.SpeedKmh: 5.0}}
						seen[i] = delivery.Observation{Unit: units[at], At: time.Now(), Report: &report}
					}
					if _, err := twins.Store(context.Background(), p.DB, seen); err != nil {
						t.Errorf("Store: %v", err)
					}
					observations.Add(1)
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				moved := vehicles.FleetFile{Agencies: file.Agencies, Vehicles: slices.Clone(file.Vehicles)}
				rand.Shuffle(fleet, func(i, j int) {
					moved.Vehicles[i].Unit, moved.Vehicles[j].Unit = moved.Vehicles[j].Unit, moved.Vehicles[i].Unit
				})
				if _, err := p.Import(context.Background(), moved); err != nil {
					t.Errorf("Import: %v", err)
				}
				imports.Add(1)
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	if !enough() {
		t.Errorf(
			"%d settlements, %d observations, %d imports: too few for this test", settlements.Load(),
			observations.Load(), imports.Load(),
		)
	}
	// The batcher would hide a deadlock by a retry, so the test reads the server's counter, which
	// is updated when a connection ends.
	for _, p := range instances {
		assert.NoError(t, p.Close())
	}
	var deadlocks int
	storetest.Eventually(t, "the connections end", func() bool {
		var others int
		require.NoError(t, watch.Pool.Get(&others, `select count(*) from pg_stat_activity where datname = current_database()
			and pid <> pg_backend_pid()`))
		return others == 0
	})
	err := watch.Pool.Get(&deadlocks, `select deadlocks from pg_stat_database where datname = current_database()`)
	if err != nil || deadlocks > 0 {
		t.Errorf("%d deadlocks, error %v; want none", deadlocks, err)
	}
}

// The progress of a command may be stored while it is settled. The settlement must not take the
// state before for the present one, or the answer would be lost until the vehicle repeats it.
func TestSettle_UsesTheStateThatItLocks(t *testing.T) {
	for _, with := range []int{0, 1} {
		t.Run(fmt.Sprintf("with %d other settlements", with), func(t *testing.T) { settleDuringNote(t, with) })
	}
}

func settleDuringNote(t *testing.T, others int) {
	p := open(t, storetest.NewDatabase(t))
	vehicle, unit := storetest.AddVehicle(t, p.DB, 1)
	c := brokertest.NewCommand(vehicle, telematics.Lock)
	c.Unit = unit
	p.mustClaim(t, c)
	note := storetest.Begin(t, p.Pool)
	storetest.Exec(t, note, `update commands set state = 'sent', sent_at = now(), attempts = 1 where id = $1`, c.ID)
	batch := []delivery.Settlement{{Command: c.ID, Unit: unit, State: telematics.Succeeded, At: time.Now()}}
	for range others {
		batch = append(batch, delivery.Settlement{Command: uuid.New(), State: telematics.Succeeded, At: time.Now()})
	}
	results, err := p.settleUnlocked(t.Context(), pointers(batch))
	require.NoError(t, err)
	for i, r := range results {
		if r.command != nil || r.locked != (i == 0) || r.err != nil {
			t.Errorf("settlement %d: %+v, want the first one locked", i, r)
		}
	}
	require.NoError(t, note.Commit())
	if _, ok, err := p.Settle(t.Context(), batch[0]); err != nil || !ok {
		t.Errorf("Settle = %t, %v; want it applied", ok, err)
	}
}
