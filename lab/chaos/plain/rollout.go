package plain

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

const (
	restarts = 2 // of each instance
	// settled is how long the balancer may take to send requests to a ready instance: two checks.
	settled = 2 * time.Second
	// leastCalls is how many commands each vehicle must have had for a round to prove something.
	leastCalls = 10
)

var rolloutLaws = []law{noFailure, answeredOnce, noOther}

// rollout is the world of a rolling restart.
type rollout struct {
	*fleet
	public string // URL of the balancer
}

// Rollout restarts the instances one after the other, as an upgrade does, behind HAProxy with its
// production configuration. It has 40 vehicles by default.
//
//	callers ─TLS─ HAProxy ─TLS─ instance 0, 1 ─ Postgres, Redis, Mosquitto ─ cars
func Rollout(w *world.World, c runner.Config) (runner.Round, error) {
	c.Vehicles = cmp.Or(c.Vehicles, 40)
	r := &rollout{fleet: newFleet(w, c)}
	latency := simulator.Between(50*time.Millisecond, 500*time.Millisecond)
	return runner.Round{
		Starts: fmt.Sprintf("servers, %d instances behind HAProxy and %d cars", instances, c.Vehicles),
		World: []world.Step{
			{What: "servers", Do: r.startServers}, {What: "instances", Do: r.startBalanced}, {What: "vehicles", Do: r.importVehicles},
			{What: "cars", Do: func(ctx context.Context) error { return r.startCars(ctx, cars{latency: latency}) }},
		},
		Load: r.load, Faults: r.restart, Check: r.check,
	}, nil
}

// startBalanced starts the instances with TLS and the default drain, and the balancer.
func (r *rollout) startBalanced(ctx context.Context) error {
	authority, err := devstack.NewAuthority(r.Path("authority"))
	if err != nil {
		return err
	}
	public, err := authority.Issue("public")
	if err != nil {
		return err
	}
	// Every second caller opens a connection for each call, the others use keep-alive.
	r.client = func(id telematics.VehicleID) *http.Client {
		return &http.Client{Transport: &http.Transport{TLSClientConfig: authority.Trusted(), DisableKeepAlives: id%2 == 0}}
	}
	if err := r.startInstances(ctx, instances, world.InstanceConfig{Settings: []string{
		"MOTORPOOL_HTTP_CERT=" + public.CertFile, "MOTORPOOL_HTTP_KEY=" + public.KeyFile, "MOTORPOOL_DRAIN=5s",
	}}); err != nil {
		return err
	}
	var backends []devstack.Backend
	for _, n := range r.Running {
		backends = append(backends, devstack.Backend{URL: n.Public, Health: n.Internal})
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

// load sends commands without a pause, until the restarts are over.
func (r *rollout) load(ctx context.Context, over <-chan struct{}) {
	r.lockAndUnlock(ctx, func(telematics.VehicleID, int) (string, bool) {
		select {
		case <-over:
			return "", false
		default:
			return r.public, true
		}
	})
}

// restart restarts all instances in turns.
func (r *rollout) restart(ctx context.Context) error {
	world.Pause(ctx, settled)
	for n := range restarts * instances {
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

func (r *rollout) check(took time.Duration) runner.Result {
	result := runner.Result{Report: verdict.Check(r.index(r.recorder.Events()), rolloutLaws), Done: r.executions()}
	if n := len(r.calls); n < leastCalls*r.Vehicles {
		result.Worthless = fmt.Sprintf("only %d commands in all", n)
	}
	result.Summary = r.summary(took, func(t io.Writer) {
		fmt.Fprintf(t, "restarts\t%d of each of %d instances, behind HAProxy with TLS; %d vehicles\n", restarts, instances, r.Vehicles)
		fmt.Fprintf(t, "commands\t%d, of which failed %d\n", len(r.calls), len(result.Of(noFailure.Name)))
	})
	return result
}
