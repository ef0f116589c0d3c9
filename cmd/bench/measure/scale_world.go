package measure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/cmd/bench/load"
	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
)

// scaleWorld is a world of Scale, in which vehicles have units with connections.
type scaleWorld struct {
	*testWorld
	setup               Setup
	vehicles, connected int
	brokers             []*devstack.Mosquitto
	units               []*load.Process // a process for each broker
	addresses           []string        // of those
	instances           []*world.Instance
	reader              reader // what the measurement itself reads
	commands            int    // turns of the vehicles so far
	result              *ScaleWorld
}

const (
	// All units must be announced as online within the first; the measurement goes on without them
	// after the second.
	onlineWithin  = time.Minute
	onlineTimeout = 4 * time.Minute
	onlineEvery   = time.Second
	settleTime    = 5 * time.Second
)

// newScaleWorld starts the servers, and adds vehicles to Postgres.
func (c *Scale) newScaleWorld(ctx context.Context, s Setup, r *Results, vehicles, connected int, result *ScaleWorld) (w *scaleWorld, err error) {
	*result = ScaleWorld{Vehicles: vehicles, Connected: connected}
	w = &scaleWorld{setup: s, vehicles: vehicles, connected: connected, result: result}
	if w.testWorld, err = s.newWorld(ctx, 1, r); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Close())
		}
	}()
	Say("%d vehicles on record", vehicles)
	begin := time.Now()
	if err = w.db.addVehicles(ctx, 2, vehicles); err != nil {
		return nil, err
	}
	w.fleet, result.Seeding = vehicles, time.Since(begin).Seconds()
	if result.Row, err = w.db.recordSize(ctx); err != nil {
		return nil, err
	}
	result.Row /= float64(vehicles)
	if w.reader, err = openReader(ctx, w.Postgres.URL()); err != nil {
		return nil, err
	}
	w.OnClose(w.reader.Close)
	return w, w.startBrokers(c.Shards)
}

// listening returns the vehicles whose units are connected.
func (w *scaleWorld) listening() load.Vehicles { return load.Spread(w.vehicles, w.connected) }

// startBrokers starts MQTT brokers, each with the accounts of its units.
func (w *scaleWorld) startBrokers(shards int) error {
	w.brokers = make([]*devstack.Mosquitto, shards)
	var starting errgroup.Group
	for shard := range w.brokers {
		name := fmt.Sprintf("mosquitto %d", shard+1)
		config := devstack.MosquittoConfig{
			Dir: w.Path(strings.ReplaceAll(name, " ", "-")), Units: map[string]string{}, ServicePassword: w.ServicePassword, Logger: w.LogFile(name),
		}
		starting.Go(func() (err error) {
			vehicles := w.listening()
			for n := shard; n < vehicles.Count; n += shards {
				unit := load.UnitOf(vehicles.ID(n))
				config.Units[string(unit)] = w.UnitPassword(unit)
			}
			w.brokers[shard], err = devstack.StartMosquitto(config)
			return err
		})
	}
	err := starting.Wait()
	for _, broker := range w.brokers {
		if broker != nil {
			w.OnClose(broker.Close)
		}
	}
	return err
}

// meters returns all processes but the units.
func (w *scaleWorld) meters() meters {
	m := w.processes(w.instances...)
	delete(m, "mosquitto") // no unit of this world uses it
	for i, broker := range w.brokers {
		m[fmt.Sprintf("mosquitto %d", i+1)] = broker.PID()
	}
	return m
}

func (w *scaleWorld) fail(format string, args ...any) {
	failure := fmt.Sprintf(format, args...)
	Say("%d vehicles: %s", w.vehicles, failure)
	w.result.Failures = append(w.result.Failures, failure)
}

// serveSettings returns the settings of an instance.
func (w *scaleWorld) serveSettings() []string {
	var urls []string
	for _, broker := range w.brokers {
		urls = append(urls, broker.ServiceURL())
	}
	settings := []string{"MOTORPOOL_MQTT_URL=" + strings.Join(urls, " ")}
	if w.setup.Tiny { // Postgres has the state soon, and waits for no disk
		settings = append(settings, "MOTORPOOL_STATE_INTERVAL=1s", "MOTORPOOL_ALLOW_UNSAFE_POSTGRES=true")
	}
	return settings
}

// startAll starts an instance without units, connects the units, and starts an instance anew.
func (w *scaleWorld) startAll(ctx context.Context) error {
	if err := w.startAlone(ctx); err != nil {
		return err
	}
	if err := w.connect(ctx); err != nil {
		return err
	}
	return w.startInstance(ctx)
}

// startAlone measures the start of an instance while no unit is connected.
func (w *scaleWorld) startAlone(ctx context.Context) error {
	Say("%d vehicles: start without units", w.vehicles)
	n, took, err := w.startUntilReady(ctx, w.serveSettings()...)
	if err != nil {
		return err
	}
	w.instances = append(w.instances, n)
	w.result.Alone.Ready = milliseconds(took)
	w.setup.rest(ctx, restTime)
	if err := w.remember(ctx, "no unit connected", w.vehicles); err != nil {
		return err
	}
	return w.stop()
}

// connect connects the units, with no instance of the service.
func (w *scaleWorld) connect(ctx context.Context) error {
	Say("%d vehicles: %d units connect", w.vehicles, w.connected)
	begin := time.Now()
	w.units, w.addresses = make([]*load.Process, len(w.brokers)), make([]string, len(w.brokers))
	var connecting errgroup.Group
	for shard, broker := range w.brokers {
		connecting.Go(func() (err error) {
			w.units[shard], w.addresses[shard], err = load.Serve(ctx, &load.ConnectedUnits{
				URL: broker.UnitsURL(), Secret: w.UnitSecret, Keyring: w.Path(world.KeyringFile),
				Vehicles: w.listening(), First: shard, Every: len(w.brokers),
			})
			return err
		})
	}
	err := connecting.Wait()
	for _, units := range w.units {
		if units != nil {
			w.OnClose(units.Close)
		}
	}
	w.result.Connecting = time.Since(begin).Seconds()
	return err
}

// startInstance starts an instance while all units are connected, and waits until all are announced
// as online.
func (w *scaleWorld) startInstance(ctx context.Context) error {
	Say("%d vehicles, %d connected: start of instance %d", w.vehicles, w.connected, len(w.instances)+1)
	used, err := w.reader.start(w.meters())
	if err != nil {
		return err
	}
	n, took, err := w.startUntilReady(ctx, w.serveSettings()...)
	if err != nil {
		return err
	}
	w.instances = append(w.instances, n)
	start := ScaleStart{Ready: milliseconds(took)}
	ready := time.Now()
	for ctx.Err() == nil {
		online, err := w.reader.announcedOnline(ctx)
		if err != nil {
			return err
		}
		if since := time.Since(ready); since < onlineWithin || start.Online == 0 {
			start.Online = online
		}
		if online >= w.connected {
			start.OnlineAfter = time.Since(ready).Seconds()
			break
		}
		if time.Since(ready) > onlineTimeout {
			break
		}
		world.Pause(ctx, onlineEvery)
	}
	if start.Online < w.connected {
		w.fail("%d of %d units are online %v after the start of instance %d, all after %.0f s", start.Online, w.connected, onlineWithin, len(w.instances), start.OnlineAfter)
	}
	w.setup.rest(ctx, settleTime)
	if start.Used, err = used(); err != nil {
		return err
	}
	u, err := usageOf(n.PID())
	start.Used[fmt.Sprintf("instance %d", len(w.instances))] = u
	w.result.Starts = append(w.result.Starts, start)
	return errors.Join(err, w.remember(ctx, fmt.Sprintf("presence taken, %d instances", len(w.instances)), w.connected))
}

// stop ends the instances.
func (w *scaleWorld) stop() (err error) {
	for _, n := range w.instances {
		err = errors.Join(err, n.Close())
	}
	w.instances = nil
	return err
}

// remember records the memory of all processes at a stage, which concerns a number of vehicles.
func (w *scaleWorld) remember(ctx context.Context, stage string, vehicles int) error {
	heap, err := w.heap(ctx, w.instances[0])
	if err != nil {
		return err
	}
	now := ScaleStage{Name: stage, Vehicles: vehicles, Resident: map[string]int64{}, Heap: heap}
	for name, pid := range w.meters() {
		u, err := usageOf(pid)
		if err != nil {
			return err
		}
		now.Resident[name] = u.Memory
	}
	w.result.Memory = append(w.result.Memory, now)
	return nil
}

// heap returns how many bytes of an instance's heap are in use after a collection.
func (w *scaleWorld) heap(ctx context.Context, n *world.Instance) (int64, error) {
	if _, err := w.get(ctx, n.Internal+"/debug/pprof/heap?gc=1"); err != nil {
		return 0, err
	}
	values, err := n.Metrics(ctx)
	return int64(values["go_memstats_heap_alloc_bytes"]), err
}

// lock locks the vehicles in turn, with a number of commands in flight at each instance.
func (w *scaleWorld) lock(ctx context.Context, inFlight int, d time.Duration) (Round, error) {
	var urls []string
	for _, n := range w.instances {
		urls = append(urls, n.Public)
	}
	return w.measure(ctx, func(d time.Duration) load.Job {
		job := &load.Requests{
			URLs: urls, Token: w.token, Method: http.MethodPost, Path: load.LockPath, Vehicles: w.listening(), First: w.commands, InFlight: inFlight * len(urls), For: d,
		}
		// More than it executes in that time: the next load is of other vehicles, where there are.
		w.commands += int(d.Seconds()*mostCommands)/job.InFlight + 1
		return job
	}, d, w.meters(), lockAction)
}

// mostCommands is more commands a second than two cores execute.
const mostCommands = 4000
