package money

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jmoiron/sqlx"

	"motorpool/cmd/chaos/network"
	"motorpool/cmd/internal/world"
	"motorpool/simulator/devstack"
)

// In a round of lost commits, an asynchronous standby that is some seconds behind is promoted while
// bookings are started, ended and fined; there is no other fault. Then each caller repeats what it
// did, with its keys. What the record has forgotten is done again, and no money moves again.

const (
	lostFault = "commits lost"
	// behind is how many seconds of commits are lost.
	behind = 3 * time.Second
	// minLost is how many confirmed operations must be lost at least.
	minLost = 5
)

// The lines: between instances and the primary, and between primary and standby.
const (
	database    = "database"
	replication = "replication"
)

// startStandby starts a standby, and returns the URL at which instances find the primary, whichever
// that is.
func (r *round) startStandby(ctx context.Context) (url string, err error) {
	r.lines = network.Network{}
	r.OnClose(r.lines.Close)
	if url, err = r.lines.Add(database, r.Postgres.URL()); err != nil {
		return "", err
	}
	if _, err := r.lines.Add(replication, r.Postgres.URL()); err != nil {
		return "", err
	}
	if r.standby, err = r.Postgres.StartStandby(ctx, devstack.StandbyConfig{
		Dir: r.Path("standby"), Primary: r.lines[replication].Address(), Logger: r.LogFile("standby"),
	}); err != nil {
		return "", err
	}
	r.OnClose(r.standby.Discard)
	return url, nil
}

// loseCommits fails over to the standby in the middle of the load.
func (r *round) loseCommits(ctx context.Context) error {
	world.Pause(ctx, r.Duration/2)
	r.lines[replication].Cut()
	world.Pause(ctx, behind)
	if err := r.Postgres.Kill(); err != nil {
		return err
	}
	r.lines[database].Cut()
	if err := r.standby.Promote(ctx); err != nil {
		return err
	}
	db, err := sqlx.Open("postgres", r.standby.URL()+"&connect_timeout=2")
	if err != nil {
		return err
	}
	r.OnClose(db.Close)
	r.db = db
	r.counters.add(faultGroup, lostFault)
	return r.lines[database].MendTo(r.standby.URL())
}

// repeatAll lets callers repeat, in their order, what they requested, with the same keys: what was
// refused since the record had forgotten what was before, too. It counts what was confirmed, and is
// no replay.
func (r *round) repeatAll(ctx context.Context) error {
	r.healed.Store(true)
	return all(len(r.bookings), func(i int) error {
		rng := rand.New(rand.NewPCG(r.Seed, 1<<36+uint64(i)))
		for _, d := range r.operations[i] {
			before := d.Done()
			s, tries, _ := r.callUntilDefinite(ctx, rng, r.bookings[i].call(d))
			d.Status, d.Code, d.Tries = s.status, s.code, d.Tries+tries
			if before && s.status != 0 && !s.replayed {
				r.counters.add(lostGroup, string(d.Kind))
			}
		}
		if ctx.Err() != nil {
			return fmt.Errorf("repeat operations: %w", ctx.Err())
		}
		return nil
	})
}
