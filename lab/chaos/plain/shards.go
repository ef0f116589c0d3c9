package plain

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

const (
	shardCount = 3
	killed     = 0 // the shard
	// Parts of the commands that have begun when the shard is killed, and when it is started again.
	killAt, restartAt = 0.3, 0.7
	// answersWithin bounds how long answers that were lost may take: cars report every 20 s.
	answersWithin = time.Minute
)

var shardsLaws = []law{notLate, startedOnce, recorded, truth, undamaged}

// shards is the world of several MQTT brokers.
type shards struct {
	*fleet
	brokers  [shardCount]*devstack.Mosquitto
	balancer *devstack.HAProxy
	trusted  *tls.Config  // of the balancer
	begun    atomic.Int64 // commands
	from, to time.Time    // when the shard was down
}

// Shards kills one of three MQTT brokers that do not know of each other, and starts it again.
// HAProxy, with its production configuration, routes its units to the others. It has 60 vehicles
// and 2,000 commands by default.
//
//	callers ─ instance 0, 1 ─┬─ Mosquitto 1 ─┐
//	                         ├─ Mosquitto 2 ─┼─TLS─ HAProxy ─TLS─ cars
//	                         └─ Mosquitto 3 ─┘
func Shards(w *world.World, c runner.Config) (runner.Round, error) {
	c.Vehicles, c.Commands = cmp.Or(c.Vehicles, 60), cmp.Or(c.Commands, 2000)
	r := &shards{fleet: newFleet(w, c)}
	return runner.Round{
		Starts: fmt.Sprintf("%d MQTT brokers behind HAProxy, %d instances and %d cars", shardCount, instances, c.Vehicles),
		World: []world.Step{ // the Mosquitto that comes with the servers has no client
			{What: "servers", Do: r.startServers}, {What: "shards", Do: r.startShards}, {What: "instances", Do: r.startSharded},
			{What: "vehicles", Do: r.importVehicles}, {What: "cars", Do: r.startBalanced},
		},
		Load: r.load, Faults: r.killOne, Check: r.check,
		Settle: func(ctx context.Context) error { return r.settle(ctx, r.Postgres.URL(), answersWithin, shardsLaws) },
	}, nil
}

func (r *shards) startShards(context.Context) error {
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
	for _, unit := range world.Units(r.file.Vehicles) {
		passwords[string(unit)] = r.UnitPassword(unit)
	}
	var addresses []string
	for i := range r.brokers {
		if r.brokers[i], err = devstack.StartMosquitto(devstack.MosquittoConfig{
			Dir: r.Path(shardName(i)), Units: passwords, ServicePassword: r.ServicePassword,
			CertFile: pair.CertFile, KeyFile: pair.KeyFile, Logger: r.LogFile(shardName(i)),
		}); err != nil {
			return err
		}
		r.OnClose(r.brokers[i].Close)
		_, address, _ := strings.Cut(r.brokers[i].UnitsURL(), "://")
		addresses = append(addresses, address)
	}
	if r.balancer, err = devstack.StartHAProxy(devstack.HAProxyConfig{
		Dir: r.Path("haproxy"), Public: pair, CAFile: authority.CAFile, Shards: addresses,
	}); err != nil {
		return err
	}
	r.OnClose(r.balancer.Close)
	return nil
}

func (r *shards) startSharded(ctx context.Context) error {
	var urls []string
	for _, broker := range r.brokers {
		urls = append(urls, broker.ServiceURL())
	}
	return r.startInstances(ctx, instances, world.InstanceConfig{MQTTURL: strings.Join(urls, " ")})
}

func (r *shards) startBalanced(ctx context.Context) error {
	return r.startCars(ctx, cars{
		latency: simulator.Between(50*time.Millisecond, 300*time.Millisecond),
		radio:   simulator.MQTT{Broker: r.balancer.URL(), TLS: r.trusted},
	})
}

// load sends commands without a pause, at both instances, until all of the round have begun.
func (r *shards) load(ctx context.Context, _ <-chan struct{}) {
	r.lockAndUnlock(ctx, func(id telematics.VehicleID, n int) (string, bool) {
		return r.Running[(int(id)+n)%instances].Public, r.begun.Add(1) <= int64(r.Commands)
	})
}

// killOne kills a shard, and starts it again later.
func (r *shards) killOne(ctx context.Context) (err error) {
	if err := r.await(ctx, killAt); err != nil {
		return err
	}
	if r.moved, err = r.unitsAt(killed); err != nil {
		return err
	}
	r.Progress(fmt.Sprintf("killing shard %d, with %d of %d units", killed+1, len(r.moved), r.Vehicles))
	r.from = time.Now()
	if err := r.brokers[killed].Kill(); err != nil {
		return err
	}
	if err := r.await(ctx, restartAt); err != nil {
		return err
	}
	r.Progress("starting it again")
	r.to = time.Now()
	return r.brokers[killed].Restart()
}

// await waits until a part of the commands has begun.
func (r *shards) await(ctx context.Context, part float64) error {
	return world.Eventually(ctx, 10*time.Minute, fmt.Sprintf("%.0f %% of the commands have begun", 100*part), func(context.Context) bool {
		return r.begun.Load() >= int64(part*float64(r.Commands))
	})
}

// connected matches what Mosquitto logs when a client connects.
var connected = regexp.MustCompile(`New client connected from \S+ as (car-\d+) `)

// unitsAt returns the units that have connected to a shard so far. Without a fault, they stay.
func (r *shards) unitsAt(shard int) (map[telematics.Unit]bool, error) {
	log, err := os.ReadFile(r.Path(shardName(shard) + ".log"))
	if err != nil {
		return nil, err
	}
	units := map[telematics.Unit]bool{}
	for _, found := range connected.FindAllSubmatch(log, -1) {
		units[telematics.Unit(found[1])] = true
	}
	return units, nil
}

func shardName(shard int) string { return fmt.Sprintf("shard-%d", shard+1) }

func (r *shards) check(took time.Duration) runner.Result {
	result := runner.Result{Report: verdict.Check(&r.evidence, shardsLaws), Done: r.executions()}
	during := 0
	for _, c := range r.calls {
		if c.begin.After(r.from) && c.begin.Before(r.to) {
			during++
		}
	}
	switch {
	case len(r.moved) == 0 || len(r.moved) == r.Vehicles:
		result.Worthless = fmt.Sprintf("%d of %d units were at the shard that was killed", len(r.moved), r.Vehicles)
	case during < r.Commands/10:
		result.Worthless = fmt.Sprintf("only %d commands began while the shard was down", during)
	case result.Done < r.Commands/2:
		result.Worthless = fmt.Sprintf("only %d commands were executed", result.Done)
	}
	result.Summary = r.summary(took, func(t io.Writer) {
		down := r.to.Sub(r.from).Round(100 * time.Millisecond)
		fmt.Fprintf(t, "shards\t%d behind HAProxy, of which one was down for %v; %d instances\n", shardCount, down, instances)
		fmt.Fprintf(t, "units\t%d, of which %d were at that shard\n", r.Vehicles, len(r.moved))
		fmt.Fprintf(t, "commands\t%d, of which %d began while the shard was down\n", r.Commands, during)
	})
	return result
}
