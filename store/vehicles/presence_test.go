package vehicles

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestEachVehicleThatFallsSilentIsToldByOneInstance(t *testing.T) {
	const fleet, instances = 60, 4
	address := storetest.NewDatabase(t)
	here := open(t, address)
	add := storetest.Vehicles(t, here.DB)
	now := time.Now()
	for range fleet {
		add()
	}
	if _, err := here.Pool.Exec(`update units set status = 'online', session = 's', said_at = $1, changed_at = $1, last_seen = $1, announced = 'online'`, now); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{telematics.OnlineFor - time.Second, 0}, {telematics.OnlineFor + time.Second, fleet}, {telematics.OnlineFor + time.Minute, 0}} {
		at := now.Add(step.after)
		var mu sync.Mutex
		told := map[telematics.VehicleID]int{}
		var asking sync.WaitGroup
		for range instances {
			p := open(t, address)
			asking.Go(func() {
				for range 5 { // rows that another has locked come with the next look
					aged, err := p.agedAt(context.Background(), &at)
					if err != nil {
						t.Errorf("agedAt: %v", err)
					}
					mu.Lock()
					for _, c := range aged {
						told[c.Vehicle]++
						if c.Presence != telematics.Absent || c.Agency != 1 || c.Powertrain != telematics.Electric {
							t.Errorf("told %+v", c)
						}
					}
					mu.Unlock()
				}
			})
		}
		asking.Wait()
		if len(told) != step.want {
			t.Errorf("after %v %d vehicles were told, want %d", step.after, len(told), step.want)
		}
		for id, times := range told {
			if times != 1 {
				t.Errorf("vehicle %d was told %d times", id, times)
			}
		}
	}
}

func TestMoreThanABatchIsTold(t *testing.T) {
	const fleet = agedBatch + 1
	p := open(t, storetest.NewDatabase(t))
	file := FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "MUC", Name: "Isar Mobility"}}}
	for id := range telematics.VehicleID(fleet) {
		file.Vehicles = append(file.Vehicles, telematics.Vehicle{
			ID: id + 1, AgencyID: 1, Unit: telematics.Unit(fmt.Sprintf("unit-%d", id)), Status: telematics.Available, Powertrain: telematics.Combustion, Features: []string{},
		})
	}
	if _, err := p.Import(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Pool.Exec(`update units set last_seen = now()`); err != nil {
		t.Fatal(err)
	}
	if aged, err := p.Aged(t.Context()); err != nil || len(aged) != fleet {
		t.Errorf("%d told, %v", len(aged), err)
	}
}
