package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"motorpool/lab/chaos/alerts"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// The round of one fault: the world of the round of all faults, with the servers that the fault
// needs, and nothing else that is broken, so that readiness and what a lock stops can be judged.

// prepareWorld starts the servers of the fault of a round of one.
func (r *round) prepareWorld(ctx context.Context) error {
	r.replicated = map[string]string{}
	if one := Find(r.Fault); one != nil && one.world != nil {
		return one.world(r, ctx)
	}
	return nil
}

// single returns the name of the only fault of the round; empty: it has all.
func (f flags) single() string {
	if k := Find(f.Fault); k != nil {
		return k.Name
	}
	return ""
}

func (r *round) startSentinel(context.Context) error {
	servers, err := devstack.StartRedisSentinel(r.Path("sentinel"), nil)
	if err != nil {
		return err
	}
	r.OnClose(servers.Close)
	r.replicated[Redis] = servers.URL()
	r.strike = func(ctx context.Context, _ Fault) error {
		return r.replaceMaster(ctx, servers.Master, servers.Replica)
	}
	return nil
}

// masters is the number of masters of the Redis Cluster.
const masters = 3

func (r *round) startCluster(context.Context) error {
	cluster, err := devstack.StartRedisCluster(r.Path("cluster"), masters, nil)
	if err != nil {
		return err
	}
	r.OnClose(cluster.Close)
	r.replicated[Redis] = cluster.URL()
	lost := int(r.Seed % masters)
	r.strike = func(ctx context.Context, _ Fault) error {
		return r.replaceMaster(ctx, cluster.Masters[lost], cluster.Replicas[lost])
	}
	return nil
}

// replaceMaster kills a master, and waits until Redis itself has replaced it.
func (r *round) replaceMaster(ctx context.Context, master, replica *devstack.Redis) error {
	if err := master.Kill(); err != nil {
		return err
	}
	promoted := func(context.Context) bool { return replica.IsMaster() }
	if err := world.Eventually(ctx, time.Minute, "the replica is the master", promoted); err != nil {
		return err
	}
	return r.Ready(ctx)
}

// oneFault is what a round of one fault watches.
type oneFault struct {
	alerts   *alerts.Watch
	reads    *reader
	backends int
	stop     func()
	fired    map[string]time.Time // when each alert that fired began to
}

// watchOne watches alerts, connections, and what answers show, until stop is called.
func (r *round) watchOne(ctx context.Context) (err error) {
	if r.one.alerts, err = alerts.Start(r.World); err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watchers sync.WaitGroup
	watchers.Go(func() { r.watchBackends(ctx, &r.one.backends) })
	r.one.reads = &reader{round: r}
	if !r.faults[0].Kind.Clock {
		watchers.Go(func() { r.one.reads.run(ctx) })
	}
	r.one.stop = func() { stop(); watchers.Wait() }
	r.OnClose(func() error { r.one.stop(); return nil })
	return nil
}

// settleOne waits until no state changes any more, and collects the evidence.
func (r *round) settleOne(ctx context.Context) (err error) {
	r.loadEnded()
	r.endFaults(ctx)
	if err := r.settleCommands(ctx); err != nil {
		return err
	}
	r.one.stop()
	if err := r.collectEvidence(ctx); err != nil {
		return err
	}
	r.evidence.Shown, r.evidence.Unbroken = r.one.reads.all(), r.unbroken()
	kind := r.faults[0].Kind
	switch kind.Name {
	case MonthsEnd:
		r.evidence.Months, err = r.months(ctx)
	case PostgresAsync:
		r.evidence.Unrecorded, err = r.unrecorded(ctx)
	}
	if err != nil {
		return err
	}
	r.evidence.Backends = r.backends(r.one.backends)
	if kind.TellsReadiness(r.faults[0].Target) {
		r.evidence.Ready = r.readiness.all()
	}
	r.one.fired, err = r.one.alerts.Fired(ctx)
	return err
}

// executed returns when commands ended successfully in their cars during the load, in order.
func (r *round) executed() []time.Time {
	var at []time.Time
	during := r.loading
	for _, e := range r.evidence.Flights {
		if e.Kind == simulator.CommandEnded && e.Status == telematics.Succeeded && e.True.After(during.From) && e.True.Before(during.To) {
			at = append(at, e.True)
		}
	}
	slices.SortFunc(at, time.Time.Compare)
	return at
}

// longestGap returns the longest time without an executed command that ends within an interval.
func longestGap(executed []time.Time, from, to time.Time) time.Duration {
	var longest time.Duration
	for i := 1; i < len(executed); i++ {
		if end := executed[i]; end.After(from) && end.Before(to) {
			longest = max(longest, end.Sub(executed[i-1]))
		}
	}
	return longest
}

// writeOne prints what a round of one fault has seen.
func (r *round) writeOne(t io.Writer) {
	struck, executed := r.injections.All()[0], r.executed()
	fmt.Fprintf(t, "fault\t%s of %s, for %v\n", struck.Kind.Name, struck.Target, struck.To.Sub(struck.From).Round(100*time.Millisecond))
	fmt.Fprintf(t, "executed\t%d of them during the load\n", len(executed))
	fmt.Fprintf(
		t, "longest gap\t%v without an executed command; before the fault %v\n",
		longestGap(executed, struck.From, r.loading.To).Round(10*time.Millisecond),
		longestGap(executed, r.loading.From, struck.From).Round(10*time.Millisecond),
	)
	if r.evidence.Unrecorded != nil {
		fmt.Fprintf(t, "lost\t%d executed commands are not on record\n", r.evidence.Lost())
	}
	if struck.Kind.Name == ShardKilled {
		fmt.Fprintf(t, "units\t%d of %d were at the shard that was killed\n", len(r.moved), r.Vehicles)
	}
	fmt.Fprintf(t, "connections\tat most %d to the primary, of %d\n", r.evidence.Backends.Most, r.evidence.Backends.Limit)
	for _, alert := range slices.Sorted(maps.Keys(r.one.fired)) {
		fmt.Fprintf(t, "alert\t%s, %v after the fault began\n", alert, r.one.fired[alert].Sub(struck.From).Round(100*time.Millisecond))
	}
}

// leastLost is how many executed commands a failover that loses some must lose at least.
const leastLost = 20

// worthlessOne returns why a round of one fault proves nothing, or "".
func (r *round) worthlessOne() string {
	struck, executed, months := r.injections.All()[0], r.executed(), r.evidence.Months
	switch {
	case len(executed) == 0 || executed[len(executed)-1].Before(struck.To):
		return "no command was executed after the fault"
	case executed[0].After(struck.From):
		return "no command was executed before the fault"
	case r.evidence.Backends.Most == 0:
		return "no connection of the service to the primary was seen"
	case months != nil && (months.Entries == 0 || months.Samples == 0):
		return fmt.Sprintf("of the new month there are %d audit log entries and %d samples", months.Entries, months.Samples)
	case struck.Kind.Name == RedisEvicting && r.evicted.Load() == 0:
		return "redis evicted nothing"
	case struck.Kind.Name == PostgresAsync && r.evidence.Lost() < leastLost:
		return fmt.Sprintf("the failover lost only %d commands", r.evidence.Lost())
	case struck.Kind.Name != ShardKilled:
	case len(r.moved) == 0 || len(r.moved) == r.Vehicles:
		return fmt.Sprintf("%d of %d units were at the shard that was killed", len(r.moved), r.Vehicles)
	case r.calledWithin(struck) < r.Commands/10:
		return fmt.Sprintf("only %d commands began while the shard was down", r.calledWithin(struck))
	}
	return ""
}

// calledWithin counts the calls that began during a fault.
func (r *round) calledWithin(i injection) (calls int) {
	for _, c := range r.evidence.Calls {
		if c.Start.After(i.From) && c.Start.Before(i.To) {
			calls++
		}
	}
	return calls
}
