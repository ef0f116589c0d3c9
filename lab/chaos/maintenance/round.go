// Package maintenance does to an MQTT broker, and to the credentials of its units, what operators
// do: reloads, restarts, additions, rotations, revocations, removals. Its units are OVMS modules,
// which never connect again once a login was refused. Then it checks that none was lost.
//
//	motorpool unit … ─ files ─ Mosquitto ─┬─TLS, passwords─── modules
//	issuer's revocation list ────┘        └─TLS, certificates─ modules
package maintenance

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"time"

	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
)

// Config describes a round.
type Config struct {
	Seed    uint64
	Modules int // at the beginning. Defaults to 24
	Steps   int // of maintenance. Defaults to 60
	// RemoveFirst removes each credential before the next one is added, as operators of other units
	// may: modules must be found lost.
	RemoveFirst bool
	Progress    func(string) // is called at each step. Defaults to nothing
}

// backWithin bounds how long a module may be without a connection after a step: some seconds of the
// module's time, which is faster, on a busy machine.
const backWithin = time.Minute

// lastLook is the wait before the last check: longer than a module takes to reconnect and be
// refused, a minute of its time.
const lastLook = 3 * time.Second

// round is one run, and its world.
type round struct {
	Config
	*world.World

	random  *rand.Rand
	servers *devstack.Authority
	issuer  *devstack.Authority // of certificates of modules
	revoked []tls.Certificate
	modules []*module // that must be connected
	started []*module // all, for the end
	added   int       // so far, for names
	result  Result
}

// Round builds the world, does the maintenance, and checks after each step. An error means that the
// world itself failed.
func Round(ctx context.Context, w *world.World, c Config) (Result, error) {
	c.Modules, c.Steps = cmp.Or(c.Modules, 24), cmp.Or(c.Steps, 60)
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	r := &round{Config: c, World: w, random: rand.New(rand.NewPCG(c.Seed, 0)), result: newResult(c)}
	begin := time.Now()
	r.Progress(fmt.Sprintf("seed %d: starting Mosquitto and %d modules", r.Seed, r.Modules))
	if err := r.build(ctx); err != nil {
		return r.result, err
	}
	defer r.stopAll()
	r.Progress(fmt.Sprintf("%d steps of maintenance", r.Steps))
	var deck []step
	for n := range r.Steps {
		if len(deck) == 0 {
			deck = r.shuffled()
		}
		next := deck[0]
		deck = deck[1:]
		if err := next.do(r, ctx); err != nil {
			return r.result, fmt.Errorf("step %d, %s: %w", n+1, next.name, err)
		}
		r.result.Done[next.name]++
		r.check(ctx, next.name)
	}
	world.Pause(ctx, lastLook) // what the last step has broken is seen
	r.check(ctx, "the end")
	r.result.Took = time.Since(begin)
	return r.result, ctx.Err()
}

// shuffled returns each step once, in an order that the seed draws.
func (r *round) shuffled() []step {
	deck := make([]step, len(steps))
	for i, j := range r.random.Perm(len(steps)) {
		deck[i] = steps[j]
	}
	return deck
}

// check checks every module after a step. One that was lost is found once.
func (r *round) check(ctx context.Context, after string) {
	deadline := time.Now().Add(backWithin)
	left := r.modules[:0]
	for _, m := range r.modules {
		for !m.Connected() && !m.Suspended() && time.Now().Before(deadline) {
			if world.Pause(ctx, 5*time.Millisecond); ctx.Err() != nil {
				return
			}
		}
		r.result.Must(notRefused, !m.Suspended(), "%s, after: %s", m.unit, after)
		if r.result.Must(comesBack, m.Connected(), "%s, after: %s", m.unit, after) == nil {
			left = append(left, m)
		}
	}
	r.modules = left
}
