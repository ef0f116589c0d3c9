package charging_test

import (
	"fmt"
	"testing"
	"time"

	"motorpool/internal/metricstest"
	"motorpool/internal/require"
	"motorpool/rental"
)

// scenarios are sequences of events around one charge; each returns the check of its outcome.
var scenarios = map[string]func(*world) (check func()){
	"a payment": func(w *world) func() {
		client, _ := w.client(pays)
		charge := w.add(client, rental.StartCharge)
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"a payment that is first declined": func(w *world) func() {
		client, cards := w.client(broke)
		charge := w.add(client, rental.StartCharge)
		w.later(30*time.Minute, func() { w.behaves(cards[0], pays) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"another card after a hard decline": func(w *world) func() {
		client, _ := w.client(stolen)
		charge := w.add(client, rental.FeeCharge)
		w.later(10*time.Minute, func() { w.ledger.SetDefault(client, w.card(client, pays)) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"another card after the first attempt": func(w *world) func() {
		client, _ := w.client(broke)
		charge := w.add(client, rental.FeeCharge)
		w.later(30*time.Second+time.Millisecond, func() { w.ledger.SetDefault(client, w.card(client, pays)) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"a removed card": func(w *world) func() {
		client, cards := w.client(pays, gone)
		w.ledger.SetDefault(client, cards[1])
		charge := w.add(client, rental.FeeCharge)
		w.later(10*time.Minute, func() { w.ledger.SetDefault(client, cards[0]) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"an owner who confirms": func(w *world) func() {
		client, _ := w.client(asksFor)
		charge := w.add(client, rental.StartCharge)
		w.later(10*time.Minute, func() { w.ownerConfirms(charge) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"an owner who chooses another card": func(w *world) func() {
		client, _ := w.client(asksFor)
		charge := w.add(client, rental.StartCharge)
		w.later(10*time.Minute, func() { w.ledger.SetDefault(client, w.card(client, pays)) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"a deposit that is captured": func(w *world) func() {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.later(10*time.Minute, func() { w.ledger.Amend(deposit.ID, rental.Capture, 5_000) })
		return func() {
			w.wantState(deposit, rental.Captured)
			if e := w.bank.Of(deposit.ID); e.Payments != 1 || e.Taken != 5_000 || e.Held != 0 || w.is(deposit).Settled != 5_000 {
				w.t.Errorf("the bank has %+v, our record %+v; want 5000 captured", e, w.is(deposit))
			}
		}
	},
	"a deposit that is released": func(w *world) func() {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.later(10*time.Minute, func() { w.ledger.Amend(deposit.ID, rental.Release, 0) })
		return func() { w.wantState(deposit, rental.Released); w.wantNothingHeld(deposit) }
	},
	"a deposit that is released after 45 s": func(w *world) func() {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.later(45*time.Second, func() { w.ledger.Amend(deposit.ID, rental.Release, 0) })
		return func() { w.wantState(deposit, rental.Released); w.wantNothingHeld(deposit) }
	},
	"a refund": func(w *world) func() {
		client, _ := w.client(pays)
		charge := w.add(client, rental.StartCharge)
		var refund rental.Charge
		w.later(20*time.Minute, func() {
			w.wantState(charge, rental.Paid)
			refund = w.refundOf(client, charge, 3_200)
		})
		return func() { w.wantState(refund, rental.Paid); w.wantGivenBack(refund) }
	},
}

// later runs an event while the collectors work.
func (w *world) later(d time.Duration, do func()) {
	done := make(chan struct{})
	time.AfterFunc(d, func() { defer close(done); do() })
	w.ended = append(w.ended, func() { <-done })
}

// eachStep is by how many steps the next world lasts longer.
var eachStep = map[bool]int{false: 1, true: 2}[require.Race]

// In each scenario one process dies after each of its steps: to die before a step leaves the same
// behind as to die after the step before it. The next process takes over and dies after each step,
// too. The third one survives. Each payment is in the processor's ledger exactly once.
//
// With the race detector, which makes it seven times slower, the first one dies after each second
// step, and the second one after its first step alone. make test runs it without, too.
func TestCrash_AWorkerMayDieAtEveryStep(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worlds, first := 0, 1
			for deaths := 2; deaths > 0; first += eachStep {
				deaths = 2
				for second := 1; deaths == 2 && (second == 1 || !require.Race); second++ {
					deaths = dieTwice(t, scenario, first, second)
					worlds++
				}
			}
			if first < 5 {
				t.Errorf("no worker reached step %d, want at least 5", first)
			}
			t.Logf("%d runs", worlds)
		})
	}
}

// In each scenario the worker panics once, after each of its steps. The process lives, the charge
// is due again when its lease has expired, and each payment is in the processor's ledger exactly
// once.
func TestCrash_AWorkerMayPanicAtEveryStep(t *testing.T) {
	for name, scenario := range scenarios {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for panicked, first := true, 1; panicked; first += eachStep {
				inWorld(t, func(t *testing.T, w *world) {
					w.every = 30 * time.Second
					check := scenario(w)
					m := w.collectUntil(&mortal{steps: first, panics: true})
					w.after(100 * time.Minute)
					check()
					panicked = m.panicked
					if n := metricstest.Sum(t, w.panics, "motorpool_panics_total"); (n == 1) != panicked {
						t.Errorf("step %d: %v panics counted", first, n)
					}
				})
				if first == 1 && !panicked {
					t.Error("no step panicked")
				}
			}
		})
	}
}

// dieTwice runs a scenario whose first two processes die, and returns how many died.
func dieTwice(t *testing.T, scenario func(*world) func(), first, second int) (deaths int) {
	t.Helper()
	ok := t.Run(fmt.Sprintf("dies after step %d, then after step %d", first, second), func(t *testing.T) {
		inWorld(t, func(_ *testing.T, w *world) {
			w.every = 30 * time.Second
			check := scenario(w)
			end := time.After(100 * time.Minute)
			for _, m := range []*mortal{{steps: first}, {steps: second}, {}} {
				died := make(chan struct{})
				m.died = func() { close(died) }
				w.collectUntil(m)
				select {
				case <-died:
					deaths++
					continue
				case <-end:
				}
				break
			}
			w.after(0)
			check()
		})
	})
	if !ok {
		t.FailNow()
	}
	return deaths
}
