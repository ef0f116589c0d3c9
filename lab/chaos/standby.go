package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/lab/chaos/audit"
	"motorpool/lab/chaos/network"
	"motorpool/lab/world"
	"motorpool/telematics"
)

// Faults of a Postgres with a standby. Instances have the URL of both, if it is synchronous.

const (
	// alone is how long the primary has no standby before it is killed: longer than a statement of
	// the service may take. Commits of that time are lost, so no command may depend on them.
	alone = 5 * time.Second
	// cancelEvery is how often a watchdog cancels statements that wait for the standby.
	cancelEvery = 50 * time.Millisecond
)

// withStandby returns a world with a standby, and how a fault strikes the two.
func withStandby(
	synchronous bool, strike func(*round, context.Context, Fault, *network.Standby) error,
) func(*round, context.Context) error {
	return func(r *round, ctx context.Context) error {
		standby, err := network.StartStandby(ctx, r.World, synchronous)
		if err != nil {
			return err
		}
		if r.replicated[Postgres] = standby.URL; synchronous {
			r.replicated[Postgres] = r.Postgres.URLWith(standby.Postgres)
		}
		r.strike = func(ctx context.Context, f Fault) error { return strike(r, ctx, f, standby) }
		return nil
	}
}

// failOver cuts the standby off, kills the primary, and promotes the standby.
func (r *round) failOver(ctx context.Context, _ Fault, standby *network.Standby) error {
	defer r.uptime.allDown()()
	standby.CutOff()
	world.Pause(ctx, alone)
	return r.replacePrimary(ctx, standby)
}

// loseCommits cuts an asynchronous standby off, and then fails over to it. Vehicles answer commands
// meanwhile that are not on record any more.
func (r *round) loseCommits(ctx context.Context, f Fault, standby *network.Standby) error {
	over := r.uptime.allDown()
	if err := standby.InSync(ctx, r.Postgres); err != nil {
		return err
	}
	standby.CutOff()
	world.Pause(ctx, 3*time.Second)
	err := r.replacePrimary(ctx, standby)
	over()
	world.Pause(ctx, f.For/2) // the answers come in
	return err
}

// unrecorded returns the lost commands whose answers are on record.
func (r *round) unrecorded(ctx context.Context) (map[telematics.CommandID]bool, error) {
	var ids []telematics.CommandID
	err := r.watcher.db.SelectContext(ctx, &ids, `select command_id from unrecorded_answers`)
	all := map[telematics.CommandID]bool{}
	for _, id := range ids {
		all[id] = true
	}
	return all, err
}

func (r *round) replacePrimary(ctx context.Context, standby *network.Standby) error {
	if err := standby.Replace(ctx); err != nil {
		return err
	}
	return r.Ready(ctx)
}

// loseStandby cuts the standby off for a while, so that no commit ends.
func (r *round) loseStandby(ctx context.Context, f Fault, standby *network.Standby) error {
	defer r.uptime.allDown()()
	standby.CutOff()
	world.Pause(ctx, f.For)
	return standby.Mend()
}

// cancelWaits cuts the standby off, and lets a watchdog cancel what waits for it: Postgres then
// says that it has committed locally. What it said is lost with the primary.
func (r *round) cancelWaits(ctx context.Context, f Fault, standby *network.Standby) error {
	defer r.uptime.allDown()()
	db, err := sqlx.Open("postgres", r.Postgres.URL()+"&connect_timeout=2")
	if err != nil {
		return err
	}
	defer db.Close()
	r.loseFromNow()
	standby.CutOff()
	cancelled := 0
	for end := time.Now().Add(f.For / 2); time.Now().Before(end) && ctx.Err() == nil; world.Pause(ctx, cancelEvery) {
		var now int
		if err := db.GetContext(ctx, &now, `
			select count(*) from (select pg_cancel_backend(pid) from pg_stat_activity where wait_event = 'SyncRep') c`); err != nil {
			return fmt.Errorf("cancel what waits for the standby: %w", err)
		}
		cancelled += now
	}
	r.Log.Info("waits for the standby cancelled", "number", cancelled)
	return r.replacePrimary(ctx, standby)
}

// loseFromNow notes that what Postgres shows from now on may be lost.
func (r *round) loseFromNow() {
	r.watcher.mu.Lock()
	defer r.watcher.mu.Unlock()
	r.lostFrom, r.lostAbove = time.Now(), r.watcher.last
}

// returnPrimary fails over, and starts the former primary again, as a primary, as its supervisor
// does. An instance that restarts finds it first.
func (r *round) returnPrimary(ctx context.Context, f Fault, standby *network.Standby) error {
	over := r.uptime.allDown()
	defer over()
	r.loseFromNow()
	// It needs no standby any more when it is back.
	db, err := sqlx.Open("postgres", r.Postgres.URL()+"&connect_timeout=2")
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `alter system reset synchronous_standby_names`); err != nil {
		return err
	}
	if err := r.replacePrimary(ctx, standby); err != nil {
		return err
	}
	world.Pause(ctx, time.Second) // every instance has new connections
	if err := r.Postgres.Restart(); err != nil {
		return err
	}
	if err := r.Running[0].Restart(); err != nil {
		return err
	}
	world.Pause(ctx, f.For/2)
	return r.Postgres.Kill()
}

// backendsEvery is how often the backends of the service are counted.
const backendsEvery = 250 * time.Millisecond

// watchBackends counts the connections that Postgres has of the service, until the context ends.
func (r *round) watchBackends(ctx context.Context, most *int) {
	db, err := sqlx.Open("postgres", r.Postgres.URL()+"&connect_timeout=2&application_name=chaos")
	if err != nil {
		r.Fail(err)
		return
	}
	defer db.Close()
	for ; ctx.Err() == nil; world.Pause(ctx, backendsEvery) {
		var now int
		if err := db.GetContext(ctx, &now, `select count(*) from pg_stat_activity where application_name = 'motorpool'`); err == nil {
			*most = max(*most, now)
		}
	}
}

// connections is the default of an instance's connections to Postgres.
const connections = 20

// backends returns how many connections there were, and how many there may be: a server has those
// of instances that were killed until it notices.
func (r *round) backends(most int) audit.Backends {
	limit := r.Instances * connections
	if strings.HasPrefix(r.Fault, "instance") && strings.Contains(r.Fault, "killed") {
		limit *= 2
	}
	return audit.Backends{Most: most, Limit: limit}
}
