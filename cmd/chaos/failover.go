package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"motorpool/cmd/chaos/audit"
	"motorpool/cmd/chaos/fault"
	"motorpool/cmd/chaos/verdict"
	"motorpool/cmd/internal/world"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// The rounds of failover. That of the asynchronous standby, which loses commands, has separate
// laws, in package failover; the others have those of the round of commands.
const (
	postgresAsync = "postgres-async"
	postgresSync  = "postgres-sync"
	redisSentinel = "redis-sentinel"
	redisCluster  = "redis-cluster"
)

// defaultFailoverCommands is how many commands such a round has.
const defaultFailoverCommands = 2000

// startReplicas starts the servers that fail over in this round, instead of the single one.
func (r *round) startReplicas(ctx context.Context) error {
	r.replicated = map[string]string{}
	switch r.Failover {
	case postgresSync:
		return r.startSynchronousStandby(ctx)
	case redisSentinel:
		return r.startSentinel()
	case redisCluster:
		return r.startCluster()
	}
	return nil
}

const (
	// replication is the line between primary and standby.
	replication = "replication"
	// alone is how long the primary has no standby before it is killed: longer than a statement of
	// the service may take. Commits of that time are lost, so no command may depend on them.
	alone = 5 * time.Second
)

func (r *round) startSynchronousStandby(ctx context.Context) error {
	if _, err := r.lines.Add(replication, r.Postgres.URL()); err != nil {
		return err
	}
	standby, err := r.Postgres.StartStandby(ctx, devstack.StandbyConfig{
		Dir: r.Path("standby"), Primary: r.lines[replication].Address(), Synchronous: true, Logger: r.LogFile("standby"),
	})
	if err != nil {
		return err
	}
	r.OnClose(standby.Discard)
	r.replicated[fault.Postgres] = r.Postgres.URLWith(standby)
	r.failOver = func(ctx context.Context) error {
		defer r.uptime.allDown()()
		r.lines[replication].Cut()
		world.Pause(ctx, alone)
		if err := r.Postgres.Kill(); err != nil {
			return err
		}
		if err := standby.Promote(ctx); err != nil {
			return err
		}
		return r.Ready(ctx)
	}
	return nil
}

func (r *round) startSentinel() error {
	servers, err := devstack.StartRedisSentinel(r.Path("sentinel"))
	if err != nil {
		return err
	}
	r.OnClose(servers.Close)
	r.replicated[fault.Redis] = servers.URL()
	r.failOver = func(ctx context.Context) error { return r.replaceMaster(ctx, servers.Master, servers.Replica) }
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
	r.failOver = func(ctx context.Context) error {
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

// runFailover builds the world, fails over when half of the commands are on record, and checks.
func (r *round) runFailover(ctx context.Context) (failoverSummary, error) {
	s := failoverSummary{flags: r.flags}
	progress(fmt.Sprintf("seed %d: starting servers, %d instances, %d cars", r.Seed, r.Instances, r.Vehicles))
	if err := r.build(ctx); err != nil {
		return s, err
	}
	r.load = &load{round: r, turns: make(chan struct{}, r.Callers)}
	r.load.warmUp(ctx)
	progress(fmt.Sprintf("%v of load, a failover of %s", r.Duration, r.Failover))

	s.Load.From = time.Now()
	loaded := make(chan struct{})
	go func() { defer close(loaded); r.load.run(ctx) }()
	world.Pause(ctx, r.Duration/2)
	s.Failover = injection{Fault: fault.Fault{Kind: &fault.Kind{Name: "failover"}, Target: r.Failover}, From: time.Now()}
	if err := r.failOver(ctx); err != nil {
		r.Fail(fmt.Errorf("failover of %s: %w", r.Failover, err))
	}
	s.Failover.To = time.Now()
	progress("failed over")
	<-loaded
	s.Load.To = time.Now()
	if ctx.Err() != nil {
		return s, ctx.Err()
	}
	progress("settling")
	if err := r.Ready(ctx); err != nil {
		return s, err
	}
	injections := []injection{s.Failover}
	if err := r.settleCommands(ctx, injections); err != nil {
		return s, err
	}
	var err error
	if s.Evidence, err = r.collectEvidence(ctx, injections); err != nil {
		return s, err
	}
	s.Report = audit.Check(s.Evidence)
	return s, nil
}

// failoverSummary is the result of a round of failover.
type failoverSummary struct {
	flags
	Load     audit.Interval
	Failover injection // until every instance was ready again
	Evidence audit.Evidence
	Report   verdict.Report
}

// executed returns when commands ended successfully in their cars during the load, in order.
func (s failoverSummary) executed() []time.Time {
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
func (s *failoverSummary) Outcome() *verdict.Report { return &s.Report }

// Write prints the summary.
func (s failoverSummary) Write(out io.Writer) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	e, executed := s.Evidence, s.executed()
	fmt.Fprintf(t, "\nseed\t%d\n", s.Seed)
	fmt.Fprintf(t, "failover\t%s; every instance ready again after %v\n", s.flags.Failover, s.Failover.To.Sub(s.Failover.From).Round(100*time.Millisecond))
	fmt.Fprintf(t, "load\t%v, %d instances, %d vehicles\n", s.Load.To.Sub(s.Load.From).Round(time.Second), s.Instances, s.Vehicles)
	fmt.Fprintf(t, "commands\t%d on record (%d requested), of %d calls\n", len(e.Commands), s.Commands, len(e.Calls))
	fmt.Fprintf(t, "executed\t%d of them during the load\n", len(executed))
	fmt.Fprintf(t, "longest gap\t%v without an executed command; before the failover %v\n",
		longestGap(executed, s.Failover.From, s.Load.To).Round(10*time.Millisecond), longestGap(executed, s.Load.From, s.Failover.From).Round(10*time.Millisecond))
	writeAnswers(t, e)
	_ = t.Flush() // out is the terminal
	s.Report.Write(out, s.Worthless())
}

// Worthless returns why the round proves nothing, or "".
func (s failoverSummary) Worthless() string {
	executed := s.executed()
	switch {
	case len(s.Evidence.Commands) < cmp.Or(s.Commands, 2)/2:
		return fmt.Sprintf("only %d of %d commands are on record", len(s.Evidence.Commands), s.Commands)
	case len(executed) == 0 || executed[len(executed)-1].Before(s.Failover.To):
		return "no command was executed after the failover"
	case executed[0].After(s.Failover.From):
		return "no command was executed before the failover"
	}
	return ""
}
