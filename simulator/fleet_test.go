package simulator

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/telematics/signing"
)

func TestFleet_UsesOneGoroutinePerCar(t *testing.T) {
	const cars = 300
	synctest.Test(t, func(t *testing.T) {
		radio := &fakeRadio{}
		configs := make([]Config, cars)
		for i := range configs {
			configs[i] = Config{Radio: radio, Interval: time.Minute}
		}
		before := runtime.NumGoroutine()
		fleet := NewFleet(FleetConfig{}, configs...)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- fleet.Run(ctx) }()
		time.Sleep(cars * time.Millisecond) // half of what it takes
		if n := fleet.Connected(); n == cars {
			t.Error("all cars connected at the same time, want them staggered")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := fleet.Connected(); n != cars {
			t.Errorf("%d of %d cars are connected", n, cars)
		}
		if n := runtime.NumGoroutine() - before; n > cars+10 {
			t.Errorf("%d goroutines, want about one per car", n)
		}
		cancel()
		assert.NoError(t, <-done)
		for _, link := range radio.links {
			if !link.closed {
				t.Error("a car ended without DISCONNECT")
			}
		}
	})
}

func TestFleet_EndsWhileCarsAreStarting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := NewFleet(FleetConfig{Stagger: time.Hour}, Config{Radio: &fakeRadio{}}, Config{Radio: &fakeRadio{}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		assert.NoError(t, fleet.Run(ctx))
		fleet.Cars()[1].Restart() // returns although that car never ran
	})
}

func TestFleet_CarThatCannotStartStopsTheFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("worn out")
		fleet := NewFleet(FleetConfig{}, Config{Radio: &fakeRadio{}}, Config{Radio: &fakeRadio{}, Memory: unreadable{broken}})
		if err := fleet.Run(t.Context()); !errors.Is(err, broken) {
			t.Errorf("Run = %v, want the error of the car", err)
		}
	})
}

func TestFleet_ConfigOfTheCarOverridesThatOfTheFleet(t *testing.T) {
	own := Config{Unit: "own", Broker: "tcp://own:1", Interval: time.Minute, Seed: 5, Keyring: signing.Keyring{"own": nil}}
	shared := FleetConfig{Broker: "tcp://shared:1", Interval: time.Hour, Seed: 6, Keyring: signing.Keyring{}, Recorder: &Recorder{}}
	fleet := NewFleet(shared, own, Config{Unit: "other"})
	if c := fleet.Car("own").config; c.Broker != own.Broker || c.Interval != own.Interval || c.Seed != 5 || len(c.Keyring) != 1 {
		t.Errorf("config of the car with its own values: %+v", c)
	}
	c := fleet.Car("other").config
	if c.Broker != shared.Broker || c.Interval != shared.Interval || c.Seed != 6 || c.Recorder != shared.Recorder {
		t.Errorf("config of the other car: %+v", c)
	}
	if fleet.Car("none") != nil {
		t.Error("there is a third car")
	}
}
