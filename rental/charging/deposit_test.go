package charging_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/rental/rentaltest"
)

func TestADepositIsHeldAndReleased(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.collect(nil)
		w.after(time.Minute)
		w.wantState(deposit, rental.Authorized)
		if e := w.bank.Of(deposit.ID); e.Held != amount || w.is(deposit).Settled != amount || !w.is(deposit).NextAttempt.IsZero() {
			t.Fatalf("the bank says %+v, we %+v", e, w.is(deposit))
		}
		w.ledger.Amend(deposit.ID, rental.Release, 0)
		w.after(time.Minute)
		w.wantState(deposit, rental.Released)
		w.wantNothingHeld(deposit)
		if got := w.lines(rental.DepositCharge); !slices.Equal(got, []string{"authorized", "released"}) {
			t.Errorf("history %v", got)
		}
	})
}

func (w *world) wantNothingHeld(deposit rental.Charge) {
	w.t.Helper()
	if e := w.bank.Of(deposit.ID); e.Held != 0 || e.Taken != 0 || w.is(deposit).Settled != 0 {
		w.t.Errorf("the bank says %+v, we %+v", e, w.is(deposit))
	}
}

func TestAPartOfADepositIsTaken(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.collect(nil)
		w.after(time.Minute)
		w.ledger.Amend(deposit.ID, rental.Capture, 5_000)
		w.after(time.Minute)
		w.wantState(deposit, rental.Captured)
		if e := w.bank.Of(deposit.ID); e.Taken != 5_000 || e.Held != 0 || w.is(deposit).Settled != 5_000 || w.is(deposit).PaidAt.IsZero() {
			t.Errorf("the bank says %+v, we %+v", e, w.is(deposit))
		}
		if l := w.ledger.Entries(); l[len(l)-1].Details["amount"] != "50.00" {
			t.Errorf("history %+v", l[len(l)-1])
		}
	})
}

func TestAHoldThatLapsedIsReleasedWithoutANotice(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.bank.Tell(nil)
		w.every = time.Minute
		client, _ := w.client(pays)
		deposit := w.add(client, rental.DepositCharge)
		w.collect(nil)
		w.after(7 * 24 * time.Hour)
		w.wantState(deposit, rental.Authorized)
		w.bank.Lapse(w.is(deposit).Intent)
		w.after(25 * time.Hour)
		w.wantState(deposit, rental.Released)
		w.wantNothingHeld(deposit)
	})
}

func TestAHoldThatLapsedIsReleased(t *testing.T) {
	for _, goal := range []rental.Goal{rental.Hold, rental.Capture} {
		inWorld(t, func(t *testing.T, w *world) {
			client, _ := w.client(pays)
			deposit := w.add(client, rental.DepositCharge)
			w.collect(nil)
			w.after(time.Minute)
			w.bank.Tell(nil)
			w.bank.Lapse(w.is(deposit).Intent)
			if goal == rental.Capture {
				w.ledger.Amend(deposit.ID, goal, 100)
			} else {
				_ = w.notices.Keep(t.Context(), rental.Notice{ID: "evt_lapse", Object: w.is(deposit).Intent, Kind: rental.AboutIntent})
			}
			w.after(time.Minute)
			w.wantState(deposit, rental.Released)
			if is := w.is(deposit); is.DeclineCode != "expired" || is.Settled != 0 {
				t.Errorf("%s: the deposit is %+v", goal, is)
			}
		})
	}
}

func TestADepositThatIsNotWantedAnyMoreIsNeverHeld(t *testing.T) {
	t.Run("before it was asked for", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			client, _ := w.client(pays)
			deposit := w.add(client, rental.DepositCharge)
			w.ledger.Amend(deposit.ID, rental.Release, 0)
			w.collect(nil)
			w.after(time.Minute)
			w.wantState(deposit, rental.Released)
			if calls := w.bank.Calls(); len(calls) != 0 {
				t.Errorf("the bank was asked for %v", calls)
			}
		})
	})
	t.Run("after it was declined", func(t *testing.T) {
		inWorld(t, func(t *testing.T, w *world) {
			client, cards := w.client(broke)
			deposit := w.add(client, rental.DepositCharge)
			w.collect(nil)
			w.after(time.Minute)
			w.wantState(deposit, rental.Declined)
			w.ledger.Amend(deposit.ID, rental.Release, 0)
			w.bank.Behave(cards[0].Token, pays)
			w.after(2 * time.Hour)
			w.wantState(deposit, rental.Released)
			w.wantNothingHeld(deposit)
		})
	})
}

// The hold is on its way when the booking ends: heard of or not, late or not, nothing is held
// afterwards.
func TestAReleaseOvertakesTheHoldThatIsOnItsWay(t *testing.T) {
	for _, kind := range append([]rentaltest.FaultKind{rentaltest.Well}, rentaltest.FaultKinds...) {
		for _, late := range []time.Duration{10 * time.Second, 21 * time.Second, 3 * time.Minute} {
			t.Run(fmt.Sprintf("fault %d, %v", kind, late), func(t *testing.T) {
				inWorld(t, func(t *testing.T, w *world) {
					client, _ := w.client(pays)
					confirmed := false
					w.bank.Tell(nil) // only the record says that there is something to do
					deposit := w.add(client, rental.DepositCharge)
					w.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
						if c.Method != "Confirm" || confirmed {
							return rentaltest.Fault{}
						}
						confirmed = true
						w.ledger.Amend(deposit.ID, rental.Release, 0)
						return rentaltest.Fault{Kind: kind, Late: late}
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

// Whatever a single call does, and whenever, the deposit ends as it should.
func TestADepositComesToItsGoalThroughEveryFault(t *testing.T) {
	for _, method := range []string{"CreateIntent", "Confirm", "Intent", "Capture", "Cancel"} {
		for _, kind := range rentaltest.FaultKinds {
			for goal, end := range map[rental.Goal]rental.ChargeState{rental.Capture: rental.Captured, rental.Release: rental.Released} {
				t.Run(fmt.Sprintf("%s, fault %d, %s", method, kind, goal), func(t *testing.T) {
					inWorld(t, func(t *testing.T, w *world) {
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
							t.Errorf("the bank says %+v, we %+v", e, w.is(deposit))
						}
					})
				})
			}
		}
	}
}

// twice has the first two calls of a method go wrong.
func twice(method string, kind rentaltest.FaultKind) func(rentaltest.Call) rentaltest.Fault {
	left := 2
	return func(c rentaltest.Call) rentaltest.Fault {
		if c.Method != method || left == 0 {
			return rentaltest.Fault{}
		}
		left--
		return rentaltest.Fault{Kind: kind, Late: 90 * time.Second}
	}
}
