package charging_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/telematics"
)

var errDead = errors.New("the process is dead")

// mortal gives a worker its ports until its process dies: after a step has its effect, and without
// its result. From then on no call of the worker has an effect.
type mortal struct {
	ledger  rental.Ledger
	notices rental.Notices

	mu       sync.Mutex
	steps    int  // until it dies; zero: it dies only by kill
	panics   bool // it panics instead, once, and lives
	panicked bool
	dead     bool
	died     func()
}

// kill ends the process.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.die()
}

func (m *mortal) die() {
	if m.panics {
		m.panicked = true
		panic("of the test")
	}
	if !m.dead {
		m.dead = true
		if m.died != nil {
			m.died()
		}
	}
}

// begin reports whether the step is the last one, and whether the process is dead already.
func (m *mortal) begin() (last, dead bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, true
	}
	if m.steps > 0 {
		m.steps--
		last = m.steps == 0
	}
	return last, false
}

func step[T any](m *mortal, do func() (T, error)) (none T, err error) {
	last, dead := m.begin()
	if dead {
		return none, errDead
	}
	made, err := do()
	m.mu.Lock()
	defer m.mu.Unlock()
	if last {
		m.die()
	}
	if m.dead {
		return none, errDead
	}
	return made, err
}

// look makes a call without an effect, which is no step: to die at it leaves the same behind as to
// die after the step before it.
func look[T any](m *mortal, do func() (T, error)) (none T, err error) {
	if m.isDead() {
		return none, errDead
	}
	made, err := do()
	if m.isDead() {
		return none, errDead
	}
	return made, err
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) TakeCharges(ctx context.Context, limit int, lease time.Duration) ([]rental.Job, error) {
	if m.isDead() {
		return nil, errDead
	}
	jobs, err := m.ledger.TakeCharges(ctx, limit, lease)
	if len(jobs) == 0 { // taking no charge is not a step
		return nil, err
	}
	return step(m, func() ([]rental.Job, error) { return jobs, err })
}

func (m *mortal) WriteCharge(ctx context.Context, j rental.Job, r rental.Result) (bool, error) {
	return step(m, func() (bool, error) { return m.ledger.WriteCharge(ctx, j, r) })
}

func (m *mortal) SettleCharge(ctx context.Context, j rental.Job, r rental.Result) (bool, error) {
	return step(m, func() (bool, error) { return m.ledger.SettleCharge(ctx, j, r) })
}

func (m *mortal) WakeCharge(ctx context.Context, object string) (state rental.ChargeState, woken bool, err error) {
	state, err = step(m, func() (s rental.ChargeState, err error) {
		s, woken, err = m.ledger.WakeCharge(ctx, object)
		return s, err
	})
	return state, woken, err
}

func (m *mortal) Dispute(ctx context.Context, object string, entry telematics.Activity) (bool, error) {
	return step(m, func() (bool, error) { return m.ledger.Dispute(ctx, object, entry) })
}

// mortalNotices are the notices as a mortal worker sees them.
type mortalNotices struct{ m *mortal }

func (h mortalNotices) Keep(context.Context, rental.Notice) error {
	panic("a worker must not store notices")
}

func (h mortalNotices) TakeNotices(ctx context.Context, limit int, lease time.Duration) ([]rental.Notice, error) {
	if h.m.isDead() {
		return nil, errDead
	}
	notices, err := h.m.notices.TakeNotices(ctx, limit, lease)
	if len(notices) == 0 {
		return nil, err
	}
	return step(h.m, func() ([]rental.Notice, error) { return notices, err })
}

func (h mortalNotices) Handled(ctx context.Context, id string, again time.Time) error {
	_, err := step(h.m, func() (struct{}, error) { return struct{}{}, h.m.notices.Handled(ctx, id, again) })
	return err
}

// collectUntil runs a collector whose process dies at a step, and returns its process. Each request
// to the bank that may change something is a step.
func (w *world) collectUntil(m *mortal) *mortal {
	m.ledger, m.notices = w.ledger, w.notices
	w.collect(func(c *charging.Config) {
		c.Ledger, c.Notices = m, mortalNotices{m}
		c.Processor = w.bank.Through(func(r *http.Request) (*http.Response, error) {
			call := func() (*http.Response, error) { return w.bank.RoundTrip(r) }
			if r.Method == http.MethodGet {
				return look(m, call)
			}
			return step(m, call)
		})
	})
	return m
}

// A payment with the charge's identity but another amount, or another currency, is not taken as its
// payment, and the log says so.
func TestRecover_APaymentOfAnotherAmountIsNotTaken(t *testing.T) {
	for what, made := range map[string]rental.IntentRequest{
		"another amount":   {Amount: amount / 10, Currency: "EUR"},
		"another currency": {Amount: amount, Currency: "JPY"},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				client, cards := w.client(pays)
				charge := w.add(client, rental.StartCharge)
				made.Payment, made.Customer = charge.PaymentID(), rentaltest.CustomerOf(client)
				other, err := w.bank.CreateIntent(t.Context(), "earlier", made)
				require.NoError(t, err)
				_, err = w.bank.Confirm(t.Context(), "earlier-confirm", other.ID, cards[0].Token)
				require.NoError(t, err)
				var log bytes.Buffer
				c := w.collect(func(c *charging.Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
				w.after(time.Minute)
				w.wantState(charge, rental.Paid)
				if is := w.is(charge); is.Intent == other.ID || is.Settled != amount {
					t.Errorf("%d of %d are paid, by %s; the other payment is %+v", is.Settled, amount, is.Intent, other)
				}
				assert.Equal(t, metric(t, c, "payments_recovered_total"), 0, "payments recovered")
				for _, want := range []string{
					"level=ERROR", "intent=" + other.ID, fmt.Sprintf("amount=%d currency=%s", made.Amount, made.Currency),
					fmt.Sprintf("charge_amount=%d charge_currency=EUR", amount),
				} {
					if !strings.Contains(log.String(), want) {
						t.Errorf("the log has no %s:\n%s", want, log.String())
					}
				}
			})
		})
	}
}
