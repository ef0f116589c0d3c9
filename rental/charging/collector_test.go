package charging_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/charging"
)

// slowBank delays each confirmation, and counts how many are in flight.
type slowBank struct {
	rental.Processor
	takes time.Duration
	mu    sync.Mutex
	now   int
	most  int
}

func (b *slowBank) Confirm(ctx context.Context, key, intent, token string) (rental.Intent, error) {
	b.enter(1)
	defer b.enter(-1)
	select {
	case <-ctx.Done():
		return rental.Intent{}, &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: ctx.Err()}
	case <-time.After(b.takes):
		return b.Processor.Confirm(ctx, key, intent, token)
	}
}

func (b *slowBank) enter(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now += n
	b.most = max(b.most, b.now)
}

func (b *slowBank) mostConcurrent() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.most
}

func TestCollector_RunsNoMoreChargesThanWorkers(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		bank := &slowBank{Processor: w.bank, takes: 10 * time.Second}
		client, _ := w.client(pays)
		var charges []rental.Charge
		for range 10 {
			charges = append(charges, w.add(client, rental.FeeCharge))
		}
		w.collect(func(c *charging.Config) { c.Processor, c.Workers = bank, 3 })
		w.after(39 * time.Second)
		paid := 0
		for _, c := range charges {
			if w.is(c).State == rental.Paid {
				paid++
			}
		}
		if most := bank.mostConcurrent(); most != 3 || paid != 9 {
			t.Errorf("at most %d concurrently and %d paid, want 3 and 9", most, paid)
		}
		w.after(10 * time.Second)
	})
}

func TestCollector_ANudgeStartsWorkImmediately(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.every = time.Hour
		c := w.collect(nil)
		w.after(time.Minute)
		client, _ := w.client(pays)
		charge := w.add(client, rental.FeeCharge)
		for range 100 {
			c.Nudge() // several nudges are as good as one
		}
		w.after(0)
		w.wantState(charge, rental.Paid)
	})
}

func TestCollector_FinishesChargesInFlightWhenItStops(t *testing.T) {
	for name, test := range map[string]struct {
		takes, ends time.Duration
		state       rental.ChargeState
	}{
		"finishes before the limit": {takes: 10 * time.Second, ends: 5 * time.Second, state: rental.Paid},
		"exceeds the limit":         {takes: time.Hour, ends: 15 * time.Second, state: rental.Unknown},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				client, _ := w.client(pays)
				charge := w.add(client, rental.FeeCharge)
				c := charging.NewCollector(charging.Config{Ledger: w.ledger, Notices: w.notices, Cards: w.cards, Timeout: 20 * time.Second,
					Processor: &slowBank{Processor: w.bank, takes: test.takes}, Logger: quiet})
				ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				began := time.Now()
				require.NoError(t, c.Run(ctx))
				if took := time.Since(began) - 5*time.Second; took != test.ends {
					t.Errorf("Run ended %v after its context, want %v", took, test.ends)
				}
				assert.Equal(t, w.is(charge).State, test.state, "the charge")
			})
		})
	}
}

func TestCollector_ContinuesAfterTheLedgerWasUnavailable(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.every = time.Second
		client, _ := w.client(pays)
		charge := w.add(client, rental.FeeCharge)
		m := &mortal{}
		m.ledger, m.notices = w.ledger, w.notices
		m.kill()
		w.collect(func(c *charging.Config) { c.Ledger, c.Notices = m, mortalNotices{m} })
		w.after(time.Minute)
		w.wantState(charge, rental.Pending)
		m.mu.Lock()
		m.dead = false
		m.mu.Unlock()
		w.after(2 * time.Second)
		w.wantState(charge, rental.Paid)
	})
}

func TestCollector_DefaultTimeoutIsAtMostAThirdOfTheLease(t *testing.T) {
	c := charging.NewCollector(charging.Config{Lease: 30 * time.Second, Timeout: time.Minute})
	if c.Timeout > c.Lease/3 || c.Workers != 8 || c.Every != time.Second {
		t.Errorf("defaults %+v", c.Config)
	}
}
