package charging_test

import (
	"fmt"
	"testing"
	"time"

	"motorpool/rental"
)

// lives are stories of one charge. Each says what the world does meanwhile, and how it must end.
var lives = map[string]func(*world) (check func()){
	"a payment": func(w *world) func() {
		client, _ := w.client(pays)
		charge := w.add(client, rental.StartCharge)
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"a payment that is declined at first": func(w *world) func() {
		client, cards := w.client(broke)
		charge := w.add(client, rental.StartCharge)
		w.later(30*time.Minute, func() { w.bank.Behave(cards[0].Token, pays) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"another card after a refusal": func(w *world) func() {
		client, _ := w.client(stolen)
		charge := w.add(client, rental.FeeCharge)
		w.later(10*time.Minute, func() { w.ledger.SetDefault(client, w.card(client, pays)) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"another card immediately": func(w *world) func() {
		client, _ := w.client(broke)
		charge := w.add(client, rental.FeeCharge)
		w.later(30*time.Second+time.Millisecond, func() { w.ledger.SetDefault(client, w.card(client, pays)) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"a card that is gone": func(w *world) func() {
		client, cards := w.client(pays, gone)
		w.ledger.SetDefault(client, cards[1])
		charge := w.add(client, rental.FeeCharge)
		w.later(10*time.Minute, func() { w.ledger.SetDefault(client, cards[0]) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"an owner who confirms": func(w *world) func() {
		client, _ := w.client(asksFor)
		charge := w.add(client, rental.StartCharge)
		w.later(10*time.Minute, func() { w.bank.OwnerConfirms(w.is(charge).Intent) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"an owner who takes another card": func(w *world) func() {
		client, _ := w.client(asksFor)
		charge := w.add(client, rental.StartCharge)
		w.later(10*time.Minute, func() { w.ledger.SetDefault(client, w.card(client, pays)) })
		return func() { w.wantState(charge, rental.Paid); w.wantOnce(charge) }
	},
	"a deposit that is taken": func(w *world) func() {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.later(10*time.Minute, func() { w.ledger.Amend(deposit.ID, rental.Capture, 5_000) })
		return func() {
			w.wantState(deposit, rental.Captured)
			if e := w.bank.Of(deposit.ID); e.Payments != 1 || e.Taken != 5_000 || e.Held != 0 || w.is(deposit).Settled != 5_000 {
				w.t.Errorf("the bank says %+v, we %+v", e, w.is(deposit))
			}
		}
	},
	"a deposit that is released": func(w *world) func() {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.later(10*time.Minute, func() { w.ledger.Amend(deposit.ID, rental.Release, 0) })
		return func() { w.wantState(deposit, rental.Released); w.wantNothingHeld(deposit) }
	},
	"a deposit that is released immediately": func(w *world) func() {
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

// later has something happen while the collectors work.
func (w *world) later(d time.Duration, do func()) {
	done := make(chan struct{})
	time.AfterFunc(d, func() { defer close(done); do() })
	w.ended = append(w.ended, func() { <-done })
}

// A process dies at each step of each life, before the step has its effect or after; the next one
// that takes the work over dies at each of its steps; the third lives. The processor's ledger has
// everything once.
func TestAWorkerMayDieAtEveryStep(t *testing.T) {
	for name, live := range lives {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worlds, first := 0, 1
			for deaths := 2; deaths > 0; first++ {
				deaths = 2
				for second := 1; deaths == 2; second++ {
					for _, after := range []bool{false, true} {
						deaths = min(deaths, dieTwice(t, live, first, second, after, !after))
						worlds++
					}
				}
			}
			if first < 5 {
				t.Errorf("no worker died after step %d", first)
			}
			t.Logf("%d worlds", worlds)
		})
	}
}

// dieTwice returns how many processes died.
func dieTwice(t *testing.T, live func(*world) func(), first, second int, firstAfter, secondAfter bool) (deaths int) {
	t.Helper()
	ok := t.Run(fmt.Sprintf("at %d %v and %d %v", first, firstAfter, second, secondAfter), func(t *testing.T) {
		inWorld(t, func(_ *testing.T, w *world) {
			w.every = 30 * time.Second
			check := live(w)
			end := time.After(100 * time.Minute)
			for _, m := range []*mortal{{steps: first, after: firstAfter}, {steps: second, after: secondAfter}, {}} {
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
