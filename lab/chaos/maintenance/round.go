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
	"io"
	"math/rand/v2"
	"time"

	"motorpool/lab/chaos/runner"
	"motorpool/lab/chaos/verdict"
	"motorpool/lab/world"
	"motorpool/simulator/devstack"
)

// Plan is what operators do.
type Plan struct {
	Modules int // at the beginning. Defaults to 24
	Steps   int // of maintenance. Defaults to 60
	// RemoveFirst removes each credential before the next one is added, as operators of other units
	// may: modules must be found lost.
	RemoveFirst bool
}

// backWithin bounds how long a module may be without a connection after a step: some seconds of the
// module's time, which is faster, on a busy machine.
const backWithin = time.Minute

// lastLook is the wait before the last check: longer than a module takes to reconnect and be
// refused, a minute of its time.
const lastLook = 3 * time.Second

// The laws.
const (
	notRefused = "no login of a module is refused"
	comesBack  = "a module is connected again after each step"
	guarded    = "the password of a running module is not replaced"
)

// round is one run, and its world.
type round struct {
	runner.Config
	Plan
	*world.World

	random  *rand.Rand
	servers *devstack.Authority
	issuer  *devstack.Authority // of certificates of modules
	revoked []tls.Certificate
	modules []*module // that must be connected
	started []*module // all, for the end
	added   int       // so far, for names
	verdict.Report
	done map[string]int // steps, by name
}

// Round returns rounds that do the maintenance, and check after each step.
func Round(p Plan) runner.Kind {
	p.Modules, p.Steps = cmp.Or(p.Modules, 24), cmp.Or(p.Steps, 60)
	return func(w *world.World, c runner.Config) (runner.Round, error) {
		r := &round{
			Config: c, Plan: p, World: w, random: rand.New(rand.NewPCG(c.Seed, 0)),
			Report: verdict.New(notRefused, comesBack, guarded), done: map[string]int{},
		}
		return runner.Round{
			Starts: fmt.Sprintf("Mosquitto and %d modules", p.Modules),
			World: []world.Step{
				{What: "authorities", Do: r.makeAuthorities}, {What: "mosquitto", Do: r.startMosquitto},
				{What: "modules", Do: r.addModules},
			},
			Faults: r.maintain, Check: r.result,
		}, nil
	}
}

// maintain does the steps, in an order that the seed draws: each once before any comes again.
func (r *round) maintain(ctx context.Context) error {
	defer r.stopAll()
	r.Progress(fmt.Sprintf("%d steps of maintenance", r.Steps))
	var deck []int
	for n := range r.Steps {
		if len(deck) == 0 {
			deck = r.random.Perm(len(steps))
		}
		next := steps[deck[0]]
		deck = deck[1:]
		if err := next.do(r, ctx); err != nil {
			return fmt.Errorf("step %d, %s: %w", n+1, next.name, err)
		}
		r.done[next.name]++
		r.check(ctx, next.name)
	}
	world.Pause(ctx, lastLook) // what the last step has broken is seen
	r.check(ctx, "the end")
	return nil
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
		r.Must(notRefused, !m.Suspended(), "%s, after: %s", m.unit, after)
		if r.Must(comesBack, m.Connected(), "%s, after: %s", m.unit, after) == nil {
			left = append(left, m)
		}
	}
	r.modules = left
}

func (r *round) result(took time.Duration) runner.Result {
	result := runner.Result{Report: r.Report, Summary: func(t io.Writer) {
		fmt.Fprintf(t, "\nseed\t%d\n", r.Seed)
		fmt.Fprintf(t, "modules\t%d at the beginning\n", r.Modules)
		fmt.Fprintf(t, "time\t%v\n", took.Round(time.Second))
		verdict.WriteCounts(t, "step", "times", r.done)
	}}
	for _, s := range steps {
		if result.Done += r.done[s.name]; r.done[s.name] == 0 {
			result.Worthless = "never done: " + s.name
		}
	}
	if len(r.Unchecked()) > 0 {
		result.Worthless = fmt.Sprintf("never checked: %q", r.Unchecked())
	}
	return result
}
