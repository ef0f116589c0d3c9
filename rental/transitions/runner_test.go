package transitions

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/rental"
)

// paying is a store with one start, whose charge has a state.
type paying struct {
	Store
	charge rental.ChargeState
}

func (paying) Transition(_ context.Context, id rental.TransitionID) (rental.Transition, error) {
	return rental.Transition{ID: id, Kind: rental.StartRental, State: rental.TransitionOpen, Step: rental.StepPay}, nil
}

func (p paying) BookingDetails(context.Context, rental.BookingID) (rental.BookingDetails, error) {
	return rental.BookingDetails{Charges: []rental.Charge{{Kind: rental.StartCharge, State: p.charge}}}, nil
}

// A caller that waits for a start learns soon that the card's owner must confirm, since nothing
// else happens meanwhile.
func TestAwait_EndsWhenTheCardsOwnerMustConfirm(t *testing.T) {
	const wait = 10 * time.Second
	for state, most := range map[rental.ChargeState]time.Duration{rental.RequiresAction: awaitEvery, rental.Pending: wait} {
		synctest.Test(t, func(t *testing.T) {
			r, began := New(Config{Store: paying{charge: state}}), time.Now()
			got, err := r.Await(t.Context(), rental.TransitionID{1}, wait)
			if took := time.Since(began); err != nil || got.State != rental.TransitionOpen || took != most {
				t.Errorf("with a charge that is %s it returns %s after %v, %v; want it open after %v", state, got.State, took, err, most)
			}
		})
	}
}
