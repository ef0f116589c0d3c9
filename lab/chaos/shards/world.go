package shards

import (
	"context"
	"strings"
	"time"

	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
)

func (r *round) build(ctx context.Context) error {
	return r.Build(ctx,
		world.Step{What: "servers", Do: r.startServers},
		world.Step{What: "shards", Do: r.startShards},
		world.Step{What: "instances", Do: r.startInstances},
		world.Step{What: "vehicles", Do: func(ctx context.Context) error { return r.fleet.Import(ctx) }},
		world.Step{What: "cars", Do: r.startCars})
}

// startServers starts Redis and Postgres. The Mosquitto that comes with them has no client.
func (r *round) startServers(ctx context.Context) (err error) {
	r.fleet, err = r.StartPlainFleet(ctx, r.Vehicles)
	return err
}

func (r *round) startShards(context.Context) error {
	authority, err := devstack.NewAuthority(r.Path("authority"))
	if err != nil {
		return err
	}
	pair, err := authority.Issue("mqtt")
	if err != nil {
		return err
	}
	r.trusted = authority.Trusted()
	passwords := map[string]string{}
	for _, unit := range world.Units(r.fleet.File.Vehicles) {
		passwords[string(unit)] = r.UnitPassword(unit)
	}
	var addresses []string
	for i := range r.shards {
		if r.shards[i], err = devstack.StartMosquitto(devstack.MosquittoConfig{
			Dir: r.Path(shardName(i)), Units: passwords, ServicePassword: r.ServicePassword,
			CertFile: pair.CertFile, KeyFile: pair.KeyFile, Logger: r.LogFile(shardName(i)),
		}); err != nil {
			return err
		}
		r.OnClose(r.shards[i].Close)
		_, address, _ := strings.Cut(r.shards[i].UnitsURL(), "://")
		addresses = append(addresses, address)
	}
	if r.balancer, err = devstack.StartMQTTBalancer(devstack.MQTTBalancerConfig{
		Dir: r.Path("haproxy"), Public: pair, CAFile: authority.CAFile, Shards: addresses,
	}); err != nil {
		return err
	}
	r.OnClose(r.balancer.Close)
	return nil
}

func (r *round) startInstances(ctx context.Context) error {
	var urls []string
	for _, shard := range r.shards {
		urls = append(urls, shard.ServiceURL())
	}
	for range instances {
		if _, err := r.StartInstance(ctx, world.InstanceConfig{MQTTURL: strings.Join(urls, " ")}); err != nil {
			return err
		}
	}
	return r.Ready(ctx)
}

func (r *round) startCars(ctx context.Context) error {
	return r.fleet.StartCars(ctx, world.PlainCars{
		Seed: r.Seed, Latency: simulator.Between(50*time.Millisecond, 300*time.Millisecond),
		Radio: simulator.MQTT{Broker: r.balancer.URL(), TLS: r.trusted},
	})
}
