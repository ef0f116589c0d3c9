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
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"motorpool/cmd/internal/world"
	"motorpool/httpapi/auth"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/store/vehicles"
	"motorpool/telematics"
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

	token    string
	fleet    vehicles.FleetFile
	public   string // URL of the balancer
	trusted  *tls.Config
	recorder simulator.Recorder
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
	loaded, end := make(chan []call, 1), make(chan struct{})
	go func() { loaded <- r.load(ctx, end) }()
	err := r.restart(ctx)
	close(end)
	calls := <-loaded
	return newResult(c, calls, r.recorder.Events(), time.Since(begin)), cmp.Or(err, ctx.Err())
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
		world.Step{What: "vehicles", Do: func(ctx context.Context) error { return r.Import(ctx, r.fleet) }},
		world.Step{What: "cars", Do: r.startCars})
}

func (r *round) startServers(ctx context.Context) error {
	var err error
	if r.token, err = r.Token(telematics.Actor{Subject: "chaos", Role: telematics.Admin}, auth.ScopeAllAgencies); err != nil {
		return err
	}
	r.fleet.Agencies = []telematics.Agency{{ID: 1, Code: "CHAOS", Name: "Chaos"}}
	for id := 1; id <= r.Vehicles; id++ {
		r.fleet.Vehicles = append(r.fleet.Vehicles, world.Vehicle(id, 1, telematics.Unit(fmt.Sprintf("car-%d", id))))
	}
	return r.StartServers(ctx, world.ServersConfig{Units: world.Units(r.fleet.Vehicles)})
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
	if r.trusted, err = trusting(authority.CAFile); err != nil {
		return err
	}
	var backends []devstack.Backend
	for range instances {
		one, err := r.StartInstance(ctx, world.InstanceConfig{Settings: []string{
			"MOTORPOOL_HTTP_CERT=" + public.CertFile, "MOTORPOOL_HTTP_KEY=" + public.KeyFile, "MOTORPOOL_DRAIN=5s",
		}})
		if err != nil {
			return err
		}
		backends = append(backends, devstack.Backend{Addr: host(one.Public), Health: host(one.Internal)})
	}
	if err := r.Ready(ctx); err != nil {
		return err
	}
	balancer, err := devstack.StartHAProxy(devstack.HAProxyConfig{Dir: r.Path("haproxy"), Public: public, CAFile: authority.CAFile, Backends: backends})
	if err != nil {
		return err
	}
	r.OnClose(balancer.Close)
	r.public = balancer.URL()
	return nil
}

func (r *round) startCars(ctx context.Context) error {
	var cars []simulator.Config
	for _, v := range r.fleet.Vehicles {
		cars = append(cars, simulator.Config{
			Unit: v.Unit, Password: r.UnitPassword(v.Unit), Broker: r.Mosquitto.UnitsURL(),
			Profile: simulator.Profile{Actions: simulator.AllActions, Latency: simulator.Between(50*time.Millisecond, 500*time.Millisecond)},
		})
	}
	fleet := r.StartCars(ctx, r.Fail, simulator.FleetConfig{Keyring: r.Signing.Keyring(), Recorder: &r.recorder, Seed: r.Seed}, cars...)
	return world.Eventually(ctx, time.Minute, "all cars connected", func(context.Context) bool { return fleet.Connected() == r.Vehicles })
}

func trusting(file string) (*tls.Config, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}, nil
}

// host returns the address in a URL.
func host(url string) string {
	_, address, _ := strings.Cut(url, "://")
	return address
}

// client returns that of one caller. Every second one opens a connection for each call, the others
// keep theirs.
func (r *round) client(caller int) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: r.trusted, DisableKeepAlives: caller%2 == 0}}
}

// percentile returns one of durations, which it sorts.
func percentile(durations []time.Duration, of float64) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	return durations[min(len(durations)-1, int(of*float64(len(durations))))]
}
