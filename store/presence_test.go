package store

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestEachVehicleThatFallsSilentIsToldByOneInstance(t *testing.T) {
	const fleet, instances = 60, 4
	address := storetest.NewDatabase(t)
	here := open(t, address)
	add := storetest.Vehicles(t, here.DB)
	now := time.Now()
	var heard []delivery.Observation
	for range fleet {
		_, unit := add()
		heard = append(heard, delivery.Observation{Unit: unit, At: now, Presence: &telematics.Presence{Status: telematics.Online, Session: "s", At: now}})
	}
	if seen, err := here.Observe(t.Context(), heard); err != nil || len(seen.Changes) != fleet {
		t.Fatalf("%d changes, %v", len(seen.Changes), err)
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

func TestForgottenContactsAreToldAsUnknown(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	id, unit := storetest.AddVehicle(t, p.DB, 1)
	if _, err := p.Observe(t.Context(), []delivery.Observation{{Unit: unit, At: time.Now(), Presence: &telematics.Presence{Status: telematics.Online, At: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	if err := p.ForgetContacts(t.Context()); err != nil {
		t.Fatal(err)
	}
	aged, err := p.Aged(t.Context())
	if err != nil || len(aged) != 1 || aged[0].Vehicle != id || aged[0].Presence != telematics.Absent || !aged[0].LastSeen.IsZero() {
		t.Errorf("told %+v, %v", aged, err)
	}
}

// What is told and what a list finds follow from one expression, but a contact is judged by
// telematics.Contact.At where it is observed: the two must not contradict each other.
func TestWhatObservingToldIsNeverTakenBackAtOnce(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	add := storetest.Vehicles(t, p.DB)
	now := time.Now()
	for _, age := range []time.Duration{0, time.Minute, telematics.OnlineFor - 2*time.Minute, telematics.OnlineFor + time.Second, time.Hour} {
		for _, status := range []telematics.PresenceStatus{telematics.Online, telematics.Standby, telematics.Offline} {
			for _, retained := range []bool{false, true} {
				for _, heard := range []bool{false, true} {
					_, unit := add()
					at := now.Add(-age)
					seen := []delivery.Observation{{Unit: unit, At: at, Retained: retained, Presence: &telematics.Presence{Status: status, Session: "s", At: at}}}
					if heard {
						seen = append(seen, delivery.Observation{Unit: unit, At: at.Add(time.Second)})
					}
					if _, err := p.Observe(t.Context(), seen); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if aged, err := p.Aged(t.Context()); err != nil || len(aged) > 0 {
		t.Errorf("taken back: %+v, %v", aged, err)
	}
}
