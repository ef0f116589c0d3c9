package failover

import (
	"context"
	"time"

	"motorpool/lab/chaos/network"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
)

// reportInterval is that of a car, which repeats its last eight results in each report.
const reportInterval = time.Second

// The lines: between instances and the primary, and between primary and standby.
const (
	database    = "database"
	replication = "replication"
)

func (r *round) build(ctx context.Context) error {
	return r.Build(ctx,
		world.Step{What: "servers", Do: r.startServers},
		world.Step{What: "instances", Do: r.startInstances},
		world.Step{What: "vehicles", Do: func(ctx context.Context) error { return r.fleet.Import(ctx) }},
		world.Step{What: "standby", Do: r.startStandby},
		world.Step{What: "cars", Do: r.startCars})
}

func (r *round) startServers(ctx context.Context) (err error) {
	r.fleet, err = r.StartPlainFleet(ctx, r.Vehicles)
	return err
}

// startInstances lets the program under test migrate the schema, so that an older one can be
// tested.
func (r *round) startInstances(ctx context.Context) error {
	r.OnClose(r.lines.Close)
	through, err := r.lines.Add(database, r.Postgres.URL())
	if err != nil {
		return err
	}
	for range r.Instances {
		if _, err := r.StartInstance(ctx, world.InstanceConfig{DatabaseURL: through}); err != nil {
			return err
		}
	}
	return r.Ready(ctx)
}

func (r *round) startStandby(ctx context.Context) error {
	if _, err := r.lines.Add(replication, r.Postgres.URL()); err != nil {
		return err
	}
	var err error
	if r.standby, err = r.Postgres.StartStandby(ctx, devstack.StandbyConfig{
		Dir: r.Path("standby"), Primary: r.lines[replication].Address(), Logger: r.LogFile("standby"),
	}); err != nil {
		return err
	}
	r.OnClose(r.standby.Discard)
	return nil
}

func (r *round) startCars(ctx context.Context) error {
	return r.fleet.StartCars(ctx, world.PlainCars{
		Seed: r.Seed, Latency: simulator.Between(10*time.Millisecond, 100*time.Millisecond), Interval: reportInterval,
	})
}

// round is one run of the test, and its world.
type round struct {
	Config
	*world.World

	fleet   *world.PlainFleet
	lines   network.Network
	standby *devstack.Postgres
}
