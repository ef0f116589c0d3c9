package charging_test

import (
	"fmt"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
)

func TestDeposit_IsHeldThenReleasedOrCapturedInPart(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		deposit, captured := w.add(client, rental.DepositCharge), w.add(client, rental.DepositCharge)
		w.collect(nil)
		w.after(time.Minute)
		w.wantState(deposit, rental.Authorized)
		if e := w.bank.Of(deposit.ID); e.Held != amount || w.is(deposit).Settled != amount || !w.is(deposit).NextAttempt.IsZero() {
			t.Fatalf("the bank has %+v, our record %+v; want the deposit held", e, w.is(deposit))
		}
		w.ledger.Amend(deposit.ID, rental.Release, 0)
		w.after(time.Minute)
		w.wantState(deposit, rental.Released)
		w.wantNothingHeld(deposit)
		w.ledger.Amend(captured.ID, rental.Capture, 5_000)
		w.after(time.Minute)
		w.wantState(captured, rental.Captured)
		if is, e := w.is(captured), w.bank.Of(captured.ID); e.Taken != 5_000 || e.Held != 0 || is.Settled != 5_000 || is.PaidAt.IsZero() {
			t.Errorf("the bank has %+v, our record %+v; want 5000 captured", e, is)
		}
		assert.EqualSlices(t, w.lines(rental.DepositCharge), []string{"authorized", "authorized", "released", "captured"}, "audit entries")
		if l := w.ledger.Entries(); l[len(l)-1].Details["amount"] != "50.00" {
			t.Errorf("audit entry %+v, want the amount 50.00", l[len(l)-1])
		}
	})
}

func (w *world) wantNothingHeld(deposit rental.Charge) {
	w.t.Helper()
	if e := w.bank.Of(deposit.ID); e.Held != 0 || e.Taken != 0 || w.is(deposit).Settled != 0 {
		w.t.Errorf("the bank has %+v, our record %+v; want nothing held or captured", e, w.is(deposit))
	}
}

func TestDeposit_LapsedHoldIsReleased(t *testing.T) {
	for what, finds := range map[string]func(*world, rental.Charge){
		"a notice": func(w *world, deposit rental.Charge) {
			w.notify("evt_lapse", rental.AboutIntent, w.is(deposit).Intent)
			w.after(time.Minute)
		},
		"a capture": func(w *world, deposit rental.Charge) {
			w.ledger.Amend(deposit.ID, rental.Capture, 100)
			w.after(time.Minute)
		},
		"the daily query": func(w *world, _ rental.Charge) { w.after(25 * time.Hour) },
	} {
		inWorld(t, func(t *testing.T, w *world) {
			w.bank.Tell(nil)
			w.every = time.Minute
			client, _ := w.client(pays)
			deposit := w.add(client, rental.DepositCharge)
			w.collect(nil)
			w.after(24 * time.Hour)
			w.wantState(deposit, rental.Authorized)
			w.lapse(deposit)
			finds(w, deposit)
			w.wantState(deposit, rental.Released)
			w.wantNothingHeld(deposit)
			if is := w.is(deposit); is.DeclineCode != "expired" {
				t.Errorf("by %s: the deposit is %+v, want it expired", what, is)
			}
		})
	}
}

func TestDeposit_ReleasedBeforeItIsHeldIsNeverHeld(t *testing.T) {
	t.Run("before the first attempt", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			client, _ := w.client(pays)
			deposit := w.add(client, rental.DepositCharge)
			w.ledger.Amend(deposit.ID, rental.Release, 0)
			w.collect(nil)
			w.after(time.Minute)
			w.wantState(deposit, rental.Released)
			assert.EqualSlices(t, w.changes(), nil, "calls of the bank")
		})
	})
	t.Run("after a decline", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			client, cards := w.client(broke)
			deposit := w.add(client, rental.DepositCharge)
			w.collect(nil)
			w.after(time.Minute)
			w.wantState(deposit, rental.Declined)
			w.ledger.Amend(deposit.ID, rental.Release, 0)
			w.behaves(cards[0], pays)
			w.after(2 * time.Hour)
			w.wantState(deposit, rental.Released)
			w.wantNothingHeld(deposit)
		})
	})
}

// The booking ends while the call that holds the deposit is in flight. Whether its response
// arrives, late or not at all, nothing is held afterwards.
func TestDeposit_ReleaseWhileTheHoldIsInFlight(t *testing.T) {
	for _, kind := range append([]sandbox.FaultKind{""}, rentaltest.FaultKinds...) {
		for _, late := range []time.Duration{10 * time.Second, 21 * time.Second, 3 * time.Minute} {
			t.Run(fmt.Sprintf("fault %s, %v late", kind, late), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					client, _ := w.client(pays)
					confirmed := false
					w.bank.Tell(nil) // no notice: only the record shows that work is due
					deposit := w.add(client, rental.DepositCharge)
					w.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
						if c.Method != "Confirm" || confirmed {
							return rentaltest.Fault{}
						}
						confirmed = true
						w.ledger.Amend(deposit.ID, rental.Release, 0)
						return rentaltest.Fault{Kind: kind, For: late}
					})
					w.collect(nil)
					w.after(time.Hour)
					w.wantState(deposit, rental.Released)
					w.wantNothingHeld(deposit)
				})
			})
		}
	}
}

// Whatever fault a single call has, and whenever, the deposit reaches its goal.
func TestDeposit_ReachesItsGoalDespiteEveryFault(t *testing.T) {
	for _, method := range []string{"CreateIntent", "Confirm", "Intent", "Capture", "Cancel"} {
		for _, kind := range rentaltest.FaultKinds {
			for goal, end := range map[rental.Goal]rental.ChargeState{rental.Capture: rental.Captured, rental.Release: rental.Released} {
				t.Run(fmt.Sprintf("%s, fault %s, %s", method, kind, goal), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
						w.every = 30 * time.Second
						client, _ := w.client(pays)
						deposit := w.add(client, rental.DepositCharge)
						w.bank.FailWith(twice(method, kind))
						w.collect(nil)
						w.after(time.Hour)
						w.wantState(deposit, rental.Authorized)
						w.ledger.Amend(deposit.ID, goal, 5_000)
						w.after(time.Hour)
						w.wantState(deposit, end)
						if e := w.bank.Of(deposit.ID); e.Payments != 1 || e.Held != 0 || e.Taken != w.is(deposit).Settled {
							t.Errorf("the bank has %+v, our record %+v; want one payment, nothing held", e, w.is(deposit))
						}
					})
				})
			}
		}
	}
}

// twice makes the first two calls of a method fail.
func twice(method string, kind sandbox.FaultKind) func(rentaltest.Call) rentaltest.Fault {
	left := 2
	return func(c rentaltest.Call) rentaltest.Fault {
		if c.Method != method || left == 0 {
			return rentaltest.Fault{}
		}
		left--
		return rentaltest.Fault{Kind: kind, For: 90 * time.Second}
	}
}
