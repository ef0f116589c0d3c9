package failover

import (
	"context"
	"fmt"
	"time"

	"motorpool/cmd/chaos/network"
	"motorpool/cmd/internal/world"
	"motorpool/httpapi/auth"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/store/vehicles"
	"motorpool/telematics"
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
		world.Step{What: "vehicles", Do: func(ctx context.Context) error { return r.Import(ctx, r.fleetFile) }},
		world.Step{What: "standby", Do: r.startStandby},
		world.Step{What: "cars", Do: r.startCars})
}

func (r *round) startServers(ctx context.Context) error {
	var err error
	if r.token, err = r.Token(telematics.Actor{Subject: "chaos", Role: telematics.Admin}, auth.ScopeAllAgencies); err != nil {
		return err
	}
	r.fleetFile.Agencies = []telematics.Agency{{ID: 1, Code: "CHAOS", Name: "Chaos"}}
	for id := 1; id <= r.Vehicles; id++ {
		r.fleetFile.Vehicles = append(r.fleetFile.Vehicles, world.Vehicle(id, 1, telematics.Unit(fmt.Sprintf("car-%d", id))))
	}
	return r.StartServers(ctx, world.ServersConfig{Units: world.Units(r.fleetFile.Vehicles)})
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
	var cars []simulator.Config
	for _, v := range r.fleetFile.Vehicles {
		cars = append(cars, simulator.Config{
			Unit: v.Unit, Password: r.UnitPassword(v.Unit), Broker: r.Mosquitto.UnitsURL(),
			Profile: simulator.Profile{Actions: simulator.AllActions, Latency: simulator.Between(10*time.Millisecond, 100*time.Millisecond)},
		})
	}
	fleet := r.StartCars(ctx, r.Fail, simulator.FleetConfig{
		Keyring: r.Signing.Keyring(), Recorder: &r.recorder, Seed: r.Seed, Interval: reportInterval,
	}, cars...)
	return world.Eventually(ctx, time.Minute, "all cars connected", func(context.Context) bool { return fleet.Connected() == r.Vehicles })
}

// round is one run of the test, and its world.
type round struct {
	Config
	*world.World

	token     string
	lines     network.Network
	standby   *devstack.Postgres
	fleetFile vehicles.FleetFile
	recorder  simulator.Recorder
}
