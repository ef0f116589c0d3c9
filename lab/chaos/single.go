package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"motorpool/lab/chaos/alerts"
	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/fault"
	"motorpool/lab/chaos/verdict"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
	"motorpool/telematics"
)

// The round of one fault: the world of the round of all faults, with the servers that the fault
// needs, and nothing else that is broken, so that readiness and what a lock stops can be judged.

// postgresAsync is a round that loses commands, with separate laws, in package failover.
const postgresAsync = fault.PostgresAsync

// commitsLost is a round of money in which Postgres fails over to a standby that is behind.
const (
	commitsLost  = "commits-lost"
	lostBookings = 150
)

// worlds start the servers that a kind of fault needs in addition.
var worlds = map[string]func(*round, context.Context) error{
	fault.PostgresSync:       withStandby((*round).failOver),
	"standby gone":           withStandby((*round).loseStandby),
	"commit waits cancelled": withStandby((*round).cancelWaits),
	"two primaries":          withStandby((*round).returnPrimary),
	fault.LeapTo2100:         (*round).withPostgresClock,
	fault.LeapADay:           (*round).withPostgresClock,
	fault.MonthsEnd:          (*round).withPostgresClock,
	fault.RedisSentinel:      func(r *round, _ context.Context) error { return r.startSentinel() },
	fault.RedisCluster:       func(r *round, _ context.Context) error { return r.startCluster() },
}

// defaultSingleCommands is how many commands such a round has.
const defaultSingleCommands = 2000

// prepareWorld starts the servers of the fault of a round of one.
func (r *round) prepareWorld(ctx context.Context) error {
	r.replicated = map[string]string{}
	if start := worlds[r.single()]; start != nil {
		return start(r, ctx)
	}
	return nil
}

// single returns the name of the only fault of the round; empty: it has all.
func (r *round) single() string {
	if k := fault.Find(r.Fault); k != nil {
		return k.Name
	}
	return ""
}

func (r *round) startSentinel() error {
	servers, err := devstack.StartRedisSentinel(r.Path("sentinel"))
	if err != nil {
		return err
	}
	r.OnClose(servers.Close)
	r.replicated[fault.Redis] = servers.URL()
	r.strike = func(ctx context.Context, _ fault.Fault) error {
		return r.replaceMaster(ctx, servers.Master, servers.Replica)
	}
	return nil
}

// masters is the number of masters of the Redis Cluster.
const masters = 3

func (r *round) startCluster() error {
	cluster, err := devstack.StartRedisCluster(r.Path("cluster"), masters)
	if err != nil {
		return err
	}
	r.OnClose(cluster.Close)
	r.replicated[fault.Redis] = cluster.URL()
	lost := int(r.Seed % masters)
	r.strike = func(ctx context.Context, _ fault.Fault) error {
		return r.replaceMaster(ctx, cluster.Masters[lost], cluster.Replicas[lost])
	}
	return nil
}

// replaceMaster kills a master, and waits until Redis itself has replaced it.
func (r *round) replaceMaster(ctx context.Context, master, replica *devstack.Redis) error {
	if err := master.Kill(); err != nil {
		return err
	}
	if err := world.Eventually(ctx, time.Minute, "the replica is the master", func(context.Context) bool { return replica.IsMaster() }); err != nil {
		return err
	}
	return r.Ready(ctx)
}

// runSingle builds the world, injects one fault in the midst of the load, and checks.
func (r *round) runSingle(ctx context.Context) (singleSummary, error) {
	one := r.plan().Single(fault.Find(r.Fault))
	s := singleSummary{flags: r.flags}
	progress(fmt.Sprintf("seed %d: starting servers, %d instances, %d cars", r.Seed, r.Instances, r.Vehicles))
	if err := r.build(ctx); err != nil {
		return s, err
	}
	r.load = &load{round: r, turns: make(chan struct{}, r.Callers)}
	r.load.warmUp(ctx)
	watch, err := alerts.Start(r.World)
	if err != nil {
		return s, err
	}
	progress(fmt.Sprintf("%v of load, with %q", r.Duration, one.Kind.Name))

	watching, stop := context.WithCancel(ctx)
	defer stop()
	var backends int
	var watchers sync.WaitGroup
	watchers.Go(func() { r.watchBackends(watching, &backends) })
	reads := &reader{round: r}
	if one.Kind.KeepsTime() {
		watchers.Go(func() { reads.run(watching) })
	}
	s.Load.From = time.Now()
	loaded := make(chan struct{})
	go func() { defer close(loaded); r.load.run(ctx) }()
	injections := r.inject(ctx, []fault.Fault{one})
	progress("the fault is over")
	<-loaded
	r.load.background.Wait()
	s.Load.To = time.Now()
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	s.Struck, s.Evicted = injections[0], r.evicted.Load()
	progress("settling")
	r.endFaults(ctx)
	if err := r.settleCommands(ctx, injections); err != nil {
		return s, err
	}
	stop()
	watchers.Wait()
	if s.Evidence, err = r.collectEvidence(ctx, injections); err != nil {
		return s, err
	}
	s.Evidence.Shown = reads.all()
	if one.Kind.Name == fault.MonthsEnd {
		if s.Evidence.Months, err = r.months(ctx); err != nil {
			return s, err
		}
	}
	s.Evidence.Backends = r.backends(backends)
	if one.Kind.TellsReadiness(one.Target) {
		s.Evidence.Ready = r.readiness.all()
	}
	s.Report = audit.Check(s.Evidence)
	if s.Fired, err = watch.Fired(ctx); err != nil || s.Struck.Err != nil {
		return s, err
	}
	alerts.Check(&s.Report, alerts.Round{
		Fault: one.Kind.Name, From: s.Struck.From, To: s.Struck.To, Fired: s.Fired, Stalled: r.uptime.stalledWithin,
	})
	return s, nil
}

// singleSummary is the result of a round of one fault.
type singleSummary struct {
	flags
	Load     audit.Interval
	Struck   injection
	Evidence audit.Evidence
	Report   verdict.Report
	Evicted  int64
	Fired    map[string]time.Time // when each alert that fired began to
}

// executed returns when commands ended successfully in their cars during the load, in order.
func (s singleSummary) executed() []time.Time {
	var at []time.Time
	for _, e := range s.Evidence.Flights {
		if e.Kind == simulator.CommandEnded && e.Status == telematics.Succeeded && e.True.After(s.Load.From) && e.True.Before(s.Load.To) {
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

// Outcome returns how the laws were kept.
func (s *singleSummary) Outcome() *verdict.Report { return &s.Report }

// Write prints the summary.
func (s singleSummary) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	e, executed := s.Evidence, s.executed()
	fmt.Fprintf(t, "\nseed\t%d\n", s.Seed)
	fmt.Fprintf(
		t, "fault\t%s of %s, for %v\n", s.Struck.Kind.Name, s.Struck.Target,
		s.Struck.To.Sub(s.Struck.From).Round(100*time.Millisecond),
	)
	fmt.Fprintf(t, "load\t%v, %d instances, %d vehicles\n", s.Load.To.Sub(s.Load.From).Round(time.Second), s.Instances, s.Vehicles)
	fmt.Fprintf(t, "commands\t%d on record (%d requested), of %d calls\n", len(e.Commands), s.Commands, len(e.Calls))
	fmt.Fprintf(t, "executed\t%d of them during the load\n", len(executed))
	fmt.Fprintf(t, "longest gap\t%v without an executed command; before the fault %v\n",
		longestGap(executed, s.Struck.From, s.Load.To).Round(10*time.Millisecond), longestGap(executed, s.Load.From, s.Struck.From).Round(10*time.Millisecond))
	fmt.Fprintf(t, "connections\tat most %d to the primary, of %d\n", e.Backends.Most, e.Backends.Limit)
	for _, alert := range slices.Sorted(maps.Keys(s.Fired)) {
		fmt.Fprintf(t, "alert\t%s, %v after the fault began\n", alert, s.Fired[alert].Sub(s.Struck.From).Round(100*time.Millisecond))
	}
	writeAnswers(t, e)
	_ = t.Flush() // out is the terminal
	s.Report.Write(out, s.Worthless())
}

// Worthless returns why the round proves nothing, or "".
func (s singleSummary) Worthless() string {
	executed := s.executed()
	switch {
	case len(s.Evidence.Commands) < cmp.Or(s.Commands, 2)/2:
		return fmt.Sprintf("only %d of %d commands are on record", len(s.Evidence.Commands), s.Commands)
	case len(executed) == 0 || executed[len(executed)-1].Before(s.Struck.To):
		return "no command was executed after the fault"
	case executed[0].After(s.Struck.From):
		return "no command was executed before the fault"
	case s.Evidence.Backends.Most == 0:
		return "no connection of the service to the primary was seen"
	case s.Evidence.Months != nil && (s.Evidence.Months.Entries == 0 || s.Evidence.Months.Samples == 0):
		return fmt.Sprintf(
			"of the new month there are %d audit log entries and %d samples", s.Evidence.Months.Entries,
			s.Evidence.Months.Samples,
		)
	case s.Struck.Kind.Name == fault.RedisEvicting && s.Evicted == 0:
		return "redis evicted nothing"
	}
	return ""
}
