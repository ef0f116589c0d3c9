// Package shards kills one of three MQTT brokers that do not know of each other while commands run,
// and starts it again. HAProxy, with its production configuration, routes its units to the others.
// Then it checks the service's promises by the callers' answers, Postgres and the flight recorders.
//
//	callers ─ instance 0, 1 ─┬─ Mosquitto 1 ─┐
//	                         ├─ Mosquitto 2 ─┼─TLS─ HAProxy ─TLS─ cars
//	                         └─ Mosquitto 3 ─┘
package shards

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"regexp"
	"sync/atomic"
	"time"

	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

// Config describes a round.
type Config struct {
	Seed     uint64
	Vehicles int          // Defaults to 60
	Commands int          // Defaults to 2,000
	Progress func(string) // is called at each step. Defaults to nothing
}

const (
	instances = 2
	shards    = 3
	killed    = 0 // the shard
	// Parts of the commands that have begun when the shard is killed, and when it is started again.
	killAt, restartAt = 0.3, 0.7
	// settleWithin bounds how long answers that were lost may take: cars report every 20 s.
	settleWithin = time.Minute
)

// round is one run, and its world.
type round struct {
	Config
	*world.World

	fleet    *world.PlainFleet
	shards   [shards]*devstack.Mosquitto
	balancer *devstack.HAProxy
	trusted  *tls.Config  // of the balancer
	begun    atomic.Int64 // commands
	moved    map[telematics.Unit]bool
}

// Round builds the world, kills a shard, and checks. An error means that the world itself failed.
func Round(ctx context.Context, w *world.World, c Config) (Result, error) {
	c.Vehicles, c.Commands = cmp.Or(c.Vehicles, 60), cmp.Or(c.Commands, 2000)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	r := &round{Config: c, World: w}
	begin := time.Now()
	r.Progress(
		fmt.Sprintf("seed %d: starting %d MQTT brokers behind HAProxy, %d instances and %d cars", r.Seed, shards, instances, r.Vehicles),
	)
	if err := r.build(ctx); err != nil {
		return Result{Config: c}, err
	}
	loaded := make(chan []world.PlainCall, 1)
	go func() { loaded <- r.load(ctx) }()
	down, err := r.killOne(ctx)
	calls := <-loaded
	if err = cmp.Or(err, ctx.Err()); err != nil {
		return Result{Config: c}, err
	}
	r.Progress("waiting for the answers that were lost")
	verdict, err := r.settle(ctx, calls)
	return newResult(c, verdict, calls, down, len(r.moved), time.Since(begin)), err
}

// killOne kills a shard, and starts it again later. It returns when it was down.
func (r *round) killOne(ctx context.Context) (down interval, err error) {
	if err := r.await(ctx, killAt); err != nil {
		return down, err
	}
	if r.moved, err = r.unitsAt(killed); err != nil {
		return down, err
	}
	r.Progress(fmt.Sprintf("killing shard %d, with %d of %d units", killed+1, len(r.moved), r.Vehicles))
	down.from = time.Now()
	if err := r.shards[killed].Kill(); err != nil {
		return down, err
	}
	if err := r.await(ctx, restartAt); err != nil {
		return down, err
	}
	r.Progress("starting it again")
	down.to = time.Now()
	return down, r.shards[killed].Restart()
}

type interval struct{ from, to time.Time }

// await waits until a part of the commands has begun.
func (r *round) await(ctx context.Context, part float64) error {
	return world.Eventually(ctx, 10*time.Minute, fmt.Sprintf("%.0f %% of the commands have begun", 100*part), func(context.Context) bool {
		return r.begun.Load() >= int64(part*float64(r.Commands))
	})
}

// connected matches what Mosquitto logs when a client connects.
var connected = regexp.MustCompile(`New client connected from \S+ as (car-\d+) `)

// unitsAt returns the units that have connected to a shard so far. Without a fault, they stay.
func (r *round) unitsAt(shard int) (map[telematics.Unit]bool, error) {
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
