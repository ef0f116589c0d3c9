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

// due is a store with a transition that is due, and whose booking cannot be read.
type due struct {
	Store
	read chan rental.BookingID
}

func (due) TakeTransitions(context.Context, int, time.Duration) ([]rental.Transition, error) {
	return []rental.Transition{{Booking: 42, Kind: rental.StartRental, State: rental.TransitionOpen, Step: rental.StepPay}}, nil
}

func (d due) BookingDetails(ctx context.Context, b rental.BookingID) (rental.BookingDetails, error) {
	d.read <- b
	return rental.BookingDetails{}, ctx.Err()
}

func (due) WriteTransition(context.Context, rental.Transition, time.Duration, time.Duration) (bool, error) {
	return false, nil
}

// While the clock is wrong, Run ends; once it is right, Run is called again.
func TestRun_MayRunAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := due{read: make(chan rental.BookingID, 1)}
		r := New(Config{Store: store})
		for range 3 {
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- r.Run(ctx) }()
			<-store.read
			stop()
			for open := true; open; {
				select {
				case <-store.read:
				case err := <-ended:
					if open = false; err != nil {
						t.Error(err)
					}
				}
			}
		}
	})
}
