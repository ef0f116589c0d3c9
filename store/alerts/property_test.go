package alerts

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"motorpool/alerts"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

// Whatever is reported, and however sweeps of two instances coincide, there is at most one open
// alert of a rule and a vehicle, and each alert opens once and is cleared once.
func TestSweep_NoSequenceOfReportsGivesTwoOpenAlerts(t *testing.T) {
	const cars, steps = 5, 24
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := newWorld(t)
	w.withPlaces()
	for id := range cars {
		w.addCar(id + 1)
	}
	var mu sync.Mutex // guards events
	events := map[string]int{}
	newInstance := func() *Store {
		s := New(Config{DB: w.db, Areas: w.places, Publish: func(e telematics.Event) {
			mu.Lock()
			defer mu.Unlock()
			events[e.Alert.ID+" "+e.Alert.Change]++
		}})
		s.now = &w.now
		return s
	}
	instances := []*Store{newInstance(), newInstance()}
	for range steps {
		for range 4 {
			car := 1 + random.IntN(cars)
			reportable := [][]any{
				{telematics.OnboardV, 11 + 2*random.Float64()}, {telematics.Battery, 30 * random.Float64()},
				{telematics.Ignition, []string{"on", "off"}[random.IntN(2)]}, {telematics.IsLocked, random.IntN(2) == 0},
				{telematics.Latitude, 48.1, telematics.Longitude, 11.3 + 0.4*random.Float64()},
				{telematics.DTCs, [][]string{nil, {"P0420"}}[random.IntN(2)]},
			}
			w.report(car, reportable[random.IntN(len(reportable))]...)
		}
		if random.IntN(4) == 0 {
			w.hear()
		}
		if random.IntN(8) == 0 {
			instances[random.IntN(len(instances))] = newInstance()
		}
		w.advance(time.Duration(random.IntN(4)) * time.Minute)
		var sweeps sync.WaitGroup
		for _, instance := range instances {
			sweeps.Go(func() {
				assert.NoError(t, instance.Sweep(t.Context()))
			})
			sweeps.Go(func() {
				raised := []alarm{{telematics.VehicleID(1), 1, telematics.Alarm{Kind: "towing"}}}
				assert.NoError(t, instance.writeAlarms(t.Context(), raised))
			})
		}
		sweeps.Wait()
		open := map[string]int{}
		for _, a := range w.find(alerts.Query{State: alerts.Open}) {
			open[string(a.Rule)+" "+a.Plate]++
		}
		for of, n := range open {
			if n > 1 {
				t.Fatalf("%d open alerts of %s", n, of)
			}
		}
	}
	all := w.find(alerts.Query{})
	if len(all) < steps/4 {
		t.Errorf("only %d alerts: the test shows little", len(all))
	}
	for _, a := range all {
		opened, cleared := events[a.ID.String()+" opened"], events[a.ID.String()+" cleared"]
		if wants := map[bool]int{true: 0, false: 1}[a.Cleared.IsZero()]; opened != 1 || cleared != wants {
			t.Errorf("%s of %s: %d times opened and %d times cleared, want 1 and %d", a.Rule, a.Plate, opened, cleared, wants)
		}
	}
}
