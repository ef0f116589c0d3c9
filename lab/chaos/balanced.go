package main

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"strings"
	"time"

	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// Worlds with HAProxy, in its production configuration, and how instances are restarted, and an
// MQTT broker is killed, behind it.

const (
	restarts = 2 // of each instance
	// balanced is how long the balancer may take to send requests to a ready instance: two checks.
	balanced = 2 * time.Second
	shards   = 3
	// movedWithin is how long units may take to come to another shard: four attempts of a car.
	movedWithin = 10 * time.Second
)

// authority issues the certificates of a world, and the pair of a server.
func (r *round) authority(server string) (a *devstack.Authority, pair devstack.KeyPair, err error) {
	if a, err = devstack.NewAuthority(r.Path("authority")); err == nil {
		pair, err = a.IssueFor(server, 30*24*time.Hour) // no alert says that it expires
	}
	return a, pair, err
}

// startBalanced puts a balancer between the callers and the instances, which have TLS and the
// default drain. Calls to every second vehicle open a connection each, the others use keep-alive.
func (r *round) startBalanced(context.Context) error {
	authority, pair, err := r.authority("public")
	if err != nil {
		return err
	}
	r.settings = []string{"MOTORPOOL_HTTP_CERT=" + pair.CertFile, "MOTORPOOL_HTTP_KEY=" + pair.KeyFile, "MOTORPOOL_DRAIN=5s"}
	for i := range r.clients {
		r.clients[i] = &http.Client{Transport: &http.Transport{
			TLSClientConfig: authority.Trusted(), DisableKeepAlives: i == 0, MaxIdleConnsPerHost: r.Callers,
		}}
	}
	r.balance = func(ctx context.Context) error {
		config := devstack.HAProxyConfig{Dir: r.Path("haproxy"), Public: pair, CAFile: authority.CAFile}
		for _, n := range r.Running {
			config.Backends = append(config.Backends, devstack.Backend{URL: n.Public, Health: n.Internal})
		}
		balancer, err := r.startHAProxy(config)
		if err != nil {
			return err
		}
		for i := range r.public {
			r.public[i] = balancer
		}
		return world.Eventually(ctx, time.Minute, "the balancer has an instance", func(ctx context.Context) bool {
			_, ok := (&reader{round: r}).get(ctx, 0, "vehicles?limit=1", &struct{}{})
			return ok
		})
	}
	return nil
}

func (r *round) startHAProxy(c devstack.HAProxyConfig) (url string, err error) {
	balancer, err := devstack.StartHAProxy(c)
	if err != nil {
		return "", err
	}
	r.OnClose(balancer.Close)
	return balancer.URL(), nil
}

// restartInTurns restarts all instances one after the other, as an upgrade does.
func (r *round) restartInTurns(ctx context.Context, _ Fault) error {
	for n := range restarts * r.Instances {
		if err := r.Running[n%r.Instances].Restart(); err != nil {
			return err
		}
		if err := r.Ready(ctx); err != nil {
			return err
		}
		world.Pause(ctx, balanced)
	}
	return nil
}

// startShards starts MQTT brokers that do not know of each other. The balancer routes each unit to
// one, and to another where that is killed.
func (r *round) startShards(context.Context) error {
	authority, pair, err := r.authority("mqtt")
	if err != nil {
		return err
	}
	passwords := map[string]string{}
	for car := range r.Vehicles {
		passwords[string(unitOf(car+1))] = r.UnitPassword(unitOf(car + 1))
	}
	balancer := devstack.HAProxyConfig{Dir: r.Path("haproxy"), Public: pair, CAFile: authority.CAFile}
	var brokers []*devstack.Mosquitto
	var urls []string
	for i := range shards {
		broker, err := devstack.StartMosquitto(devstack.MosquittoConfig{
			Dir: r.Path(shard(i)), Units: passwords, ServicePassword: r.ServicePassword,
			CertFile: pair.CertFile, KeyFile: pair.KeyFile, Logger: r.LogFile(shard(i)),
		})
		if err != nil {
			return err
		}
		r.OnClose(broker.Close)
		brokers, urls = append(brokers, broker), append(urls, broker.ServiceURL())
		_, address, _ := strings.Cut(broker.UnitsURL(), "://")
		balancer.Shards = append(balancer.Shards, address)
	}
	r.replicated[Mosquitto] = strings.Join(urls, " ")
	url, err := r.startHAProxy(balancer)
	r.radio = simulator.MQTT{Broker: url, TLS: authority.Trusted()}
	r.strike = func(ctx context.Context, f Fault) error { return r.killShard(ctx, f, brokers[0]) }
	return err
}

func shard(i int) string { return fmt.Sprintf("shard-%d", i+1) }

// killShard kills the first shard, and starts it again when its units are at the others.
func (r *round) killShard(ctx context.Context, f Fault, first *devstack.Mosquitto) (err error) {
	if r.moved, err = r.unitsAt(0); err != nil {
		return err
	}
	begin := time.Now()
	if err := first.Kill(); err != nil {
		return err
	}
	if err := world.Eventually(ctx, movedWithin, "the units of the killed shard are at others", r.haveMoved); r.mustCome(err) {
		return err
	}
	r.movedBy = time.Now().Add(aftermath)
	world.Pause(ctx, time.Until(begin.Add(f.For)))
	return first.Restart()
}

// haveMoved reports whether all units of the killed shard have connected to others.
func (r *round) haveMoved(context.Context) bool {
	left := maps.Clone(r.moved)
	for i := 1; i < shards; i++ {
		others, err := r.unitsAt(i)
		if err != nil {
			return false
		}
		maps.DeleteFunc(left, func(unit telematics.Unit, _ bool) bool { return others[unit] })
	}
	return len(left) == 0
}

var connects = regexp.MustCompile(`New client connected from \S+ as (car-\d+) `)

// unitsAt returns the units that have connected to a shard so far. Without a fault, they stay.
func (r *round) unitsAt(i int) (map[telematics.Unit]bool, error) {
	log, err := os.ReadFile(r.Path(shard(i) + ".log"))
	units := map[telematics.Unit]bool{}
	for _, found := range connects.FindAllSubmatch(log, -1) {
		units[telematics.Unit(found[1])] = true
	}
	return units, err
}

// unbroken are the vehicles all of whose commands must be executed, and since when: those of units
// that move to another MQTT broker when they have come there. Nil: the fault strikes others.
func (r *round) unbroken() map[telematics.VehicleID]time.Time {
	if name := r.single(); name != RollingRestart && name != ShardKilled {
		return nil
	}
	since := map[telematics.VehicleID]time.Time{}
	for id, sound := range r.soundCars() {
		switch {
		case !sound:
		case r.moved[unitOf(int(id))]:
			since[id] = r.movedBy
		default:
			since[id] = time.Time{}
		}
	}
	return since
}
