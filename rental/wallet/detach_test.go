package wallet_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

// within runs the wallet for some time, in virtual time.
func (p *purse) within(d time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	time.Sleep(d)
	synctest.Wait()
	cancel()
	assert.NoError(p.t, <-done, "Run")
}

func TestRun_DetachesWhatTheProcessorDidNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPurse(t)
		p.add()
		m := p.add()
		p.bank.FailAll("Detach", sandbox.TooMany)
		require.NoError(t, p.Remove(t.Context(), rental.MethodRequest{Method: m.ID, Actor: owner}))
		p.within(10 * time.Minute) // it is still unavailable
		p.bank.FailWith(nil)
		p.within(10 * time.Minute)
		p.wantsRecorded(1)
		calls := len(p.bank.Asked("Detach"))
		p.within(24 * time.Hour)
		assert.Equal(t, len(p.bank.Asked("Detach"))-calls, 0, "more calls to detach")
	})
}

func TestRun_DetachesWhatAnInstanceThatDiedHasRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPurse(t)
		p.add()
		m := p.add()
		_, err := p.cards.RemoveMethod(t.Context(), m.Client, m.ID, telematics.Activity{})
		require.NoError(t, err)
		p.within(5 * time.Minute)
		p.wantsRecorded(1)
	})
}

func TestRun_DetachesWhatARequestHasAttachedAndNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPurse(t)
		p.add()
		broken := errors.New("the connection broke before the commit was confirmed")
		p.storeFailsAtAttach(broken)
		lost, repeated := p.issue(), p.issue()
		for _, card := range []rental.Card{lost, repeated} {
			p.cards.FailWith(nil)
			if _, err := p.try(card); !errors.Is(err, broken) {
				t.Fatalf("error %v, want that of the store", err)
			}
		}
		p.bank.FailWith(nil)
		p.cards.FailWith(nil)
		p.within(30 * time.Minute)
		if n := len(p.bank.Asked("Detach")); n != 0 {
			t.Errorf("%d cards were detached while their requests may still be repeated", n)
		}
		_, err := p.try(repeated)
		require.NoError(t, err)
		p.within(2 * time.Hour)
		p.wantsRecorded(2)
	})
}

// A client can name any card of the account.
func TestRun_LeavesTheCardsOfOtherCustomers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPurse(t)
		p.add()
		elsewhere := p.issue()
		p.bank.Issue(elsewhere, "cus_of_another_shop", sandbox.Behaviour{})
		for _, card := range []rental.Card{elsewhere, rentaltest.NewCard()} {
			_, err := p.try(card)
			wantCode(t, err, rental.MethodInvalid)
		}
		p.within(24 * time.Hour)
		assert.EqualSlices(t, p.bank.Asked("Detach"), nil, "detached")
	})
}
