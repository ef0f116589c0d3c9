// Package rollout restarts the instances one after the other, as an upgrade does, behind HAProxy
// with its production configuration, while commands run. Then it checks that every command was
// answered, and executed once.
//
//	callers ─TLS─ HAProxy ─TLS─ instance 0, 1 ─ Postgres, Redis, Mosquitto ─ cars
package rollout

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"time"

	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
)

// Config describes a round.
type Config struct {
	Seed     uint64
	Vehicles int          // Defaults to 40
	Restarts int          // of each instance. Defaults to 2
	Progress func(string) // is called at each step. Defaults to nothing
}

const (
	instances = 2
	// settled is how long the balancer may take to send requests to a ready instance: two checks.
	settled = 2 * time.Second
)

// round is one run, and its world.
type round struct {
	Config
	*world.World

	fleet   *world.PlainFleet
	public  string // URL of the balancer
	trusted *tls.Config
}

// Round builds the world, restarts each instance, and checks. An error means that the world itself
// failed.
func Round(ctx context.Context, w *world.World, c Config) (Result, error) {
	c.Vehicles, c.Restarts = cmp.Or(c.Vehicles, 40), cmp.Or(c.Restarts, 2)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	r := &round{Config: c, World: w}
	begin := time.Now()
	r.Progress(fmt.Sprintf("seed %d: starting servers, %d instances behind HAProxy and %d cars", r.Seed, instances, r.Vehicles))
	if err := r.build(ctx); err != nil {
		return Result{}, err
	}
	loaded, end := make(chan []world.PlainCall, 1), make(chan struct{})
	go func() { loaded <- r.load(ctx, end) }()
	err := r.restart(ctx)
	close(end)
	calls := <-loaded
	return newResult(c, calls, r.fleet.Recorder.Events(), time.Since(begin)), cmp.Or(err, ctx.Err())
}

// restart restarts all instances in turns.
func (r *round) restart(ctx context.Context) error {
	world.Pause(ctx, settled)
	for n := range r.Restarts * instances {
		one := r.Running[n%instances]
		r.Progress("restarting " + one.Name)
		if err := one.Restart(); err != nil {
			return err
		}
		if err := r.Ready(ctx); err != nil {
			return err
		}
		world.Pause(ctx, settled)
	}
	return nil
}

func (r *round) build(ctx context.Context) error {
	return r.Build(ctx,
		world.Step{What: "servers", Do: r.startServers},
		world.Step{What: "instances", Do: r.startInstances},
		world.Step{What: "vehicles", Do: func(ctx context.Context) error { return r.fleet.Import(ctx) }},
		world.Step{What: "cars", Do: r.startCars})
}

func (r *round) startServers(ctx context.Context) (err error) {
	r.fleet, err = r.StartPlainFleet(ctx, r.Vehicles)
	return err
}

// startInstances starts them with TLS and the default drain, and the balancer.
func (r *round) startInstances(ctx context.Context) error {
	authority, err := devstack.NewAuthority(r.Path("authority"))
	if err != nil {
		return err
	}
	public, err := authority.Issue("public")
	if err != nil {
		return err
	}
	r.trusted = authority.Trusted()
	var backends []devstack.Backend
	for range instances {
		one, err := r.StartInstance(ctx, world.InstanceConfig{Settings: []string{
			"MOTORPOOL_HTTP_CERT=" + public.CertFile, "MOTORPOOL_HTTP_KEY=" + public.KeyFile, "MOTORPOOL_DRAIN=5s",
		}})
		if err != nil {
			return err
		}
		backends = append(backends, devstack.Backend{URL: one.Public, Health: one.Internal})
	}
	if err := r.Ready(ctx); err != nil {
		return err
	}
	balancer, err := devstack.StartHAProxy(
		devstack.HAProxyConfig{Dir: r.Path("haproxy"), Public: public, CAFile: authority.CAFile, Backends: backends},
	)
	if err != nil {
		return err
	}
	r.OnClose(balancer.Close)
	r.public = balancer.URL()
	return nil
}

func (r *round) startCars(ctx context.Context) error {
	return r.fleet.StartCars(ctx, world.PlainCars{Seed: r.Seed, Latency: simulator.Between(50*time.Millisecond, 500*time.Millisecond)})
}

// client returns the HTTP client of a caller. Every second one opens a connection for each call,
// the others use keep-alive.
func (r *round) client(caller int) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: r.trusted, DisableKeepAlives: caller%2 == 0}}
}
