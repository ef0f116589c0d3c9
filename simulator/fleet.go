package simulator

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// FleetConfig has the settings that the cars of a fleet share. A car's Config overrides them.
type FleetConfig struct {
	Broker   string          // Defaults to Config's
	Keyring  signing.Keyring // Defaults to none: the cars reject every command
	Latency  Latency         // Defaults to Fast
	Interval time.Duration   // between whole reports. Defaults to Config's
	Seed     uint64
	Recorder *Recorder     // Defaults to none
	Logger   *slog.Logger  // Defaults to none
	Stagger  time.Duration // between the first connections of two cars. Defaults to 2 ms
}

// Fleet runs any number of cars in one process. Each needs one goroutine, and those of its MQTT
// client.
type Fleet struct {
	cars    []*Car
	stagger time.Duration
}

// NewFleet assembles a fleet; it does nothing before Run.
func NewFleet(config FleetConfig, cars ...Config) *Fleet {
	f := &Fleet{stagger: cmp.Or(config.Stagger, 2*time.Millisecond)}
	for _, car := range cars {
		f.cars = append(f.cars, NewCar(config.fill(car)))
	}
	return f
}

func (f FleetConfig) fill(car Config) Config {
	car.Broker = cmp.Or(car.Broker, f.Broker)
	if car.Keyring == nil {
		car.Keyring = f.Keyring
	}
	if car.Profile.Latency == nil {
		car.Profile.Latency = f.Latency
	}
	car.Interval = cmp.Or(car.Interval, f.Interval)
	car.Seed = cmp.Or(car.Seed, f.Seed)
	car.Recorder = cmp.Or(car.Recorder, f.Recorder)
	car.Logger = cmp.Or(car.Logger, f.Logger)
	return car
}

// Cars returns the cars, in the order in which they were given.
func (f *Fleet) Cars() []*Car { return f.cars }

// Car returns the car with a unit, or nil.
func (f *Fleet) Car(unit telematics.Unit) *Car {
	for _, c := range f.cars {
		if c.Unit() == unit {
			return c
		}
	}
	return nil
}

// SetKeyring provisions every car of the fleet with other public keys, also those whose Config has
// some. It blocks until the cars run, as Car.SetKeyring does.
func (f *Fleet) SetKeyring(ring signing.Keyring) {
	for _, c := range f.cars {
		c.SetKeyring(ring)
	}
}

// Connected returns how many cars are connected.
func (f *Fleet) Connected() int {
	n := 0
	for _, c := range f.cars {
		if c.Connected() {
			n++
		}
	}
	return n
}

// Run runs every car until ctx is cancelled, and returns when all have disconnected. The first car
// that cannot start stops the fleet.
func (f *Fleet) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for i, c := range f.cars {
		group.Go(func() error {
			select {
			case <-time.After(time.Duration(i) * f.stagger):
				return c.Run(ctx)
			case <-ctx.Done():
				close(c.stopped)
				return nil
			}
		})
	}
	return group.Wait()
}
