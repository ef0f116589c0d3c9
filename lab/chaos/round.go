package main

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/httpapi/auth"
	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/network"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// budget is the default budget of a command, if its caller sets none.
const budget = 6 * time.Second

// round is a round of commands, and its world.
type round struct {
	flags
	*world.World

	forger signing.Key // not one of the fleet's
	keys   *fleetKeys
	admin  string // token of the callers
	app    clientApp

	faults     []Fault
	injections runner.Log[injection]
	loading    audit.Interval
	evidence   audit.Evidence

	redis    redis.UniversalClient
	disk     *disk // nil: this machine cannot mount one
	lines    network.Network
	public   []string // URL of each instance's API, through the line of the callers
	uptime   *uptime
	watcher  *watcher
	listener *listener

	fleet     makeup
	cars      []unit
	recorder  simulator.Recorder
	carFaults carFaults

	load      *load
	halts     runner.Log[audit.Halt]
	locks     runner.Log[audit.Lock]
	foreign   runner.Log[audit.Interval] // since an instance got a foreign signing key
	readiness *readiness
	awaited   runner.Log[error] // how what must come in time came

	evicted atomic.Int64 // keys by Redis, and writes that it refused as it was full
	clocks  struct {
		sync.Mutex
		wrong map[int][]audit.ClockFault
	}
	newMonth      time.Time // that the clocks have reached; zero: none
	refusedBefore int       // samples, before that
	lostFrom      time.Time // since when what Postgres showed may be lost; zero: none
	lostAbove     int64     // id of the last audit log entry that was sampled before

	replicated map[string]string // URL of each server that has no line, by its name
	// strike injects a fault with a separate world.
	strike func(context.Context, Fault) error
	one    oneFault

	clients  [2]*http.Client             // of the callers, by vehicle%2. Default to world.Callers
	settings []string                    // of the instances, in addition
	balance  func(context.Context) error // puts a balancer before the instances. Nil: none
	radio    simulator.Radio             // of the cars. Nil: through a line to Mosquitto
	moved    map[telematics.Unit]bool    // units of an MQTT broker that was killed
	movedBy  time.Time                   // when they were to be reached at others
}

// commands returns rounds of commands: with all faults, or with one.
func (f flags) commands(w *world.World, _ runner.Config) (runner.Round, error) {
	r := &round{flags: f, World: w, fleet: f.makeup(), lines: network.Network{}, uptime: newUptime(f.Instances)}
	r.clocks.wrong = map[int][]audit.ClockFault{}
	r.load = &load{round: r, turns: make(chan struct{}, f.Callers)}
	r.OnClose(r.lines.Close)
	kind := runner.Round{
		Starts: fmt.Sprintf("servers, %d instances, %d cars", f.Instances, f.Vehicles),
		World: []world.Step{
			{What: "keys", Do: r.makeKeys}, {What: "servers", Do: r.startServers}, {What: "an agency's app", Do: r.createApp},
			{What: "instances", Do: r.startInstances}, {What: "watchers", Do: r.startWatchers}, {What: "cars", Do: r.startCars},
			{What: "first commands", Do: r.load.warmUp},
		},
		Load: r.load.run, Faults: r.injectAll, Settle: r.settle, Check: r.check,
	}
	r.faults = r.plan().Schedule()
	if one := Find(f.Fault); one != nil {
		r.faults = []Fault{r.plan().Single(one)}
		kind.World = append(kind.World, world.Step{What: "alerts", Do: r.watchOne})
		kind.Settle = r.settleOne
	}
	return kind, nil
}

func (r *round) makeKeys(context.Context) (err error) {
	r.keys = newFleetKeys(r.Signing.Active().Key)
	if r.forger, err = signing.NewKey(); err != nil {
		return err
	}
	if r.single() == LeapTo2100 || r.single() == MonthsEnd {
		r.TokenLifetime = 100 * 365 * 24 * time.Hour
	}
	r.admin, err = r.Token(telematics.Actor{Subject: "chaos", Role: telematics.Admin}, auth.ScopeAllAgencies)
	return err
}

func (r *round) startServers(ctx context.Context) error {
	if r.single() == "" || r.single() == FullDisk {
		if err := r.prepareDisk(); err != nil {
			return err
		}
	}
	fleet := fleetOf(r.fleet)
	fleet.Vehicles = append(fleet.Vehicles, world.Vehicle(r.Vehicles+1, agencyOf(1), floodUnit))
	if err := r.StartServers(ctx, world.ServersConfig{Units: world.Units(fleet.Vehicles)}); err != nil {
		return err
	}
	if err := r.prepareWorld(ctx); err != nil {
		return err
	}
	var err error
	if r.redis, err = openRedis(cmp.Or(r.replicated[Redis], r.Redis.URL())); err != nil {
		return err
	}
	r.OnClose(r.redis.Close)
	if err := r.Migrate(ctx); err != nil {
		return err
	}
	return r.Import(ctx, fleet)
}

// prepareDisk puts the data of Postgres on a separate small disk, if possible.
func (r *round) prepareDisk() error {
	dir := r.Path("postgres")
	if err := os.Mkdir(dir, 0o711); err != nil {
		return err
	}
	var err error
	if r.disk, err = mountDisk(dir); err != nil {
		r.Log.Warn("full disk: not available here", "err", err)
	} else {
		r.OnClose(r.disk.unmount)
	}
	return nil
}

// startInstances puts a line between each instance and everything else, but for a server that fails
// over: that is several servers, which name each other.
func (r *round) startInstances(ctx context.Context) error {
	for i := range r.Instances {
		if err := r.linkKeys(r.signingFile(i)); err != nil {
			return err
		}
		var servers [3]string
		for k, to := range []struct{ server, url string }{
			{Mosquitto, r.Mosquitto.ServiceURL()}, {Redis, r.Redis.URL()}, {Postgres, r.Postgres.URL()},
		} {
			if servers[k] = r.replicated[to.server]; servers[k] != "" {
				continue
			}
			var err error
			if servers[k], err = r.lines.Add(ServerLine(i, to.server), to.url); err != nil {
				return err
			}
		}
		n, err := r.StartInstance(ctx, world.InstanceConfig{
			Name: Instance(i), MQTTURL: servers[0], RedisURL: servers[1], DatabaseURL: servers[2],
			Settings: append([]string{
				"MOTORPOOL_BUDGET=" + budget.String(), "MOTORPOOL_SIGNING_KEYS=" + r.signingFile(i),
			}, r.settings...),
		})
		if err != nil {
			return err
		}
		public, err := r.lines.Add(CallersLine(i), n.Public)
		if err != nil {
			return err
		}
		r.public = append(r.public, public)
	}
	if err := r.Ready(ctx); err != nil || r.balance == nil {
		return err
	}
	return r.balance(ctx)
}

func (r *round) startWatchers(ctx context.Context) error {
	var err error
	if r.watcher, err = openWatcher(cmp.Or(r.replicated[Postgres], r.Postgres.URL()), r.Log); err != nil {
		return err
	}
	r.OnClose(r.watcher.close)
	if r.listener, err = r.listen(); err != nil {
		return err
	}
	r.OnClose(r.listener.close)

	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watching sync.WaitGroup
	watching.Go(func() { r.watcher.run(ctx) })
	watching.Go(func() { r.listener.watchRetained(ctx) })
	watching.Go(func() { r.uptime.watchStalls(ctx) })
	r.readiness = watchReadiness(ctx, &watching, r.Running)
	r.OnClose(func() error { stop(); watching.Wait(); return nil })
	return nil
}
