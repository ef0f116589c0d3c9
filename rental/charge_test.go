package rental_test

import (
	"slices"
	"testing"

	"motorpool/rental"
)

var chargeStates = []rental.ChargeState{
	rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Authorized, rental.Paid, rental.Captured, rental.Released,
}

var chargeKinds = []rental.ChargeKind{rental.StartCharge, rental.DepositCharge, rental.ExtensionCharge, rental.FeeCharge, rental.RefundCharge}

// reachable returns what a charge can become, however long it takes.
func reachable(c rental.Charge) []rental.ChargeState {
	found := []rental.ChargeState{c.State}
	for i := 0; i < len(found); i++ {
		for _, next := range chargeStates {
			if (rental.Charge{Kind: c.Kind, State: found[i]}).MayBecome(next) && !slices.Contains(found, next) {
				found = append(found, next)
			}
		}
	}
	return found
}

func TestWhatBecomesOfACharge(t *testing.T) {
	pays := []rental.ChargeState{rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Paid}
	for kind, want := range map[rental.ChargeKind][]rental.ChargeState{
		rental.StartCharge: pays, rental.ExtensionCharge: pays, rental.FeeCharge: pays,
		rental.DepositCharge: {rental.Pending, rental.Unknown, rental.RequiresAction, rental.Declined, rental.Failed, rental.Authorized, rental.Captured, rental.Released},
		rental.RefundCharge:  {rental.Pending, rental.Unknown, rental.Failed, rental.Paid},
	} {
		got := reachable(rental.Charge{Kind: kind, State: rental.Pending})
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", kind, got, want)
		}
	}
}

func TestMoneyThatHasMovedStaysWhereItIs(t *testing.T) {
	for _, kind := range chargeKinds {
		for _, state := range []rental.ChargeState{rental.Paid, rental.Captured, rental.Released} {
			want := []rental.ChargeState{state}
			if kind == rental.RefundCharge && state == rental.Paid {
				want = append(want, rental.Failed) // it came back
			}
			if got := reachable(rental.Charge{Kind: kind, State: state}); !slices.Equal(got, want) || !state.IsFinal() {
				t.Errorf("%s %s: %v, want %v", kind, state, got, want)
			}
		}
	}
	if got := reachable(rental.Charge{Kind: rental.RefundCharge, State: rental.Failed}); len(got) != 1 {
		t.Errorf("a refund that failed may become %v", got)
	}
}

// Whatever was asked for and not answered is looked up, and everything may be found.
func TestFromUnknownEveryEndIsPossible(t *testing.T) {
	for kind, ends := range map[rental.ChargeKind][]rental.ChargeState{
		rental.StartCharge:   {rental.Pending, rental.RequiresAction, rental.Declined, rental.Failed, rental.Paid},
		rental.DepositCharge: {rental.Pending, rental.RequiresAction, rental.Declined, rental.Failed, rental.Authorized, rental.Captured, rental.Released},
		rental.RefundCharge:  {rental.Pending, rental.Failed, rental.Paid},
	} {
		for _, end := range ends {
			if !(rental.Charge{Kind: kind, State: rental.Unknown}).MayBecome(end) {
				t.Errorf("%s: an unknown one cannot be %s", kind, end)
			}
		}
	}
}

func TestTheStatesOfAChargeAreAllThere(t *testing.T) {
	for _, from := range chargeStates {
		final := true
		for _, to := range chargeStates {
			final = final && (!from.MayBecome(to) || from == to)
		}
		if from.IsFinal() != final || !from.MayBecome(from) || from.MayBecome("lost") {
			t.Errorf("%s: final %v", from, from.IsFinal())
		}
	}
}
