package charging_test

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/internal/assert"
	"motorpool/internal/metricstest"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

const amount = rental.Minor(13_200)

// world has a bank, a ledger and collectors, in virtual time.
type world struct {
	t       *testing.T
	bank    *rentaltest.Bank
	ledger  *rentaltest.Ledger
	notices *rentaltest.Notices
	cards   *register
	every   time.Duration
	panics  *prometheus.Registry // counts them
	guard   *guard.Guard
	ended   []func()
}

// inWorld runs a test in virtual time, and stops its collectors at the end.
func inWorld(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer func() {
			w.bank.FailWith(nil)
			for _, end := range w.ended {
				end()
			}
		}()
		test(t, w)
	})
}

// quiet is a log that discards everything.
var quiet = slog.New(slog.DiscardHandler)

func newWorld(t *testing.T) *world {
	w := &world{
		t: t, bank: rentaltest.NewBank(t), ledger: rentaltest.NewLedger(), notices: &rentaltest.Notices{},
		cards: &register{}, every: 10 * time.Second, panics: prometheus.NewRegistry(),
	}
	w.guard = guard.New(quiet, w.panics)
	w.bank.Tell(func(n rental.Notice) { _ = w.notices.Keep(context.Background(), n) })
	return w
}

// The metrics of notices, by their outcome.
const (
	wokenNotices   = `payment_notices_handled_total{result="charge_checked"}`
	finalNotices   = `payment_notices_handled_total{result="charge_final"}`
	cardNotices    = `payment_notices_handled_total{result="card_checked"}`
	unknownNotices = `payment_notices_handled_total{result="unknown_object"}`
	failedNotices  = `payment_notices_handled_total{result="failed"}`
)

// metric returns a sample of a collector, by its name without the prefix.
func metric(t testing.TB, c *charging.Collector, sample string) int64 {
	t.Helper()
	return metricstest.Sum(t, c.Metrics, "motorpool_"+sample)
}

// collect runs a collector. The change may replace its ports.
func (w *world) collect(change func(*charging.Config)) *charging.Collector {
	config := charging.Config{
		Ledger: w.ledger, Notices: w.notices, Cards: w.cards, Processor: w.bank, Every: w.every, Logger: quiet,
		Guard: w.guard,
	}
	if change != nil {
		change(&config)
	}
	c := charging.NewCollector(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	w.ended = append(w.ended, sync.OnceFunc(func() {
		cancel()
		assert.NoError(w.t, <-done, "Run")
	}))
	return c
}

// client returns a client with cards, the first of which is the default.
func (w *world) client(cards ...sandbox.Behaviour) (rental.ClientID, []rental.Method) {
	clientsMu.Lock()
	clients++
	id := clients
	clientsMu.Unlock()
	var methods []rental.Method
	for _, behaviour := range cards {
		methods = append(methods, w.card(id, behaviour))
	}
	return id, methods
}

var (
	clientsMu sync.Mutex
	clients   rental.ClientID
)

func (w *world) card(client rental.ClientID, behaviour sandbox.Behaviour) rental.Method {
	return w.ledger.GiveCard(client, w.bank.Issue(rentaltest.NewCard(), rentaltest.CustomerOf(client), behaviour))
}

// behaves changes a card.
func (w *world) behaves(m rental.Method, behaviour sandbox.Behaviour) {
	w.t.Helper()
	assert.NoError(w.t, w.bank.SetCard(m.Token, behaviour))
}

func (w *world) ownerConfirms(c rental.Charge) {
	w.t.Helper()
	assert.NoError(w.t, w.bank.OwnerConfirms(w.is(c).Intent))
}

func (w *world) lapse(deposit rental.Charge) {
	w.t.Helper()
	assert.NoError(w.t, w.bank.Lapse(w.is(deposit).Intent))
}

func (w *world) add(client rental.ClientID, k rental.ChargeKind) rental.Charge {
	c := rental.Charge{Booking: 1, Kind: k, Number: 1, State: rental.Pending, Currency: "EUR", Amount: amount, NextAttempt: time.Now()}
	if k == rental.DepositCharge {
		c.Goal = rental.Hold
	}
	return w.ledger.Add(client, c)
}

// refundOf adds a refund of a charge.
func (w *world) refundOf(client rental.ClientID, paid rental.Charge, m rental.Minor) rental.Charge {
	return w.ledger.Add(
		client,
		rental.Charge{
			Booking: 1, Kind: rental.RefundCharge, Number: 1, State: rental.Pending, Currency: "EUR", Amount: m,
			Refunds: paid.ID, NextAttempt: time.Now(),
		},
	)
}

func (w *world) is(c rental.Charge) rental.Charge { return w.ledger.Charge(c.ID) }

// after advances the time, and lets all workers do what is due.
func (w *world) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// wantState waits until the requested work is done, and checks a charge's state.
func (w *world) wantState(c rental.Charge, s rental.ChargeState) {
	w.t.Helper()
	if is := w.is(c); is.State != s {
		w.t.Fatalf("the %s charge is %s (%s), want %s; calls of the bank %v", c.Kind, is.State, is.DeclineCode, s, w.bank.Calls())
	}
}

// wantOnce checks that the bank's ledger has a payment exactly once, with the same amount as our
// record.
func (w *world) wantOnce(c rental.Charge) {
	w.t.Helper()
	if e := w.bank.Of(c.ID); e.Payments != 1 || e.Taken != c.Amount || e.Held != 0 || w.is(c).Settled != c.Amount {
		w.t.Errorf("the bank has %+v, our record %+v; want one full payment in both", e, w.is(c))
	}
}

// changes returns the calls of the bank, without the searches for payments that are not on record.
func (w *world) changes() []rentaltest.Call {
	return slices.DeleteFunc(w.bank.Calls(), func(c rentaltest.Call) bool { return c.Method == "IntentOf" })
}

func (w *world) lines(k rental.ChargeKind) (states []string) {
	for _, l := range w.ledger.Entries() {
		if l.Action == rental.ChargeActivity(k) {
			states = append(states, l.Details["state"].(string))
		}
	}
	return states
}

var (
	pays    = sandbox.Behaviour{}
	broke   = sandbox.Behaviour{Decline: "insufficient_funds"}
	stolen  = sandbox.Behaviour{Decline: "stolen_card"}
	asksFor = sandbox.Behaviour{Authenticate: true}
	gone    = sandbox.Behaviour{Gone: true}
)

// register records what becomes of cards.
type register struct {
	rental.Cards
	mu        sync.Mutex
	dropped   []string
	refreshed []rental.Card
}

func (r *register) DropCard(_ context.Context, token string, entry telematics.Activity) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry.Action == rental.MethodDropped && entry.Actor == rental.System() && !entry.At.IsZero() {
		r.dropped = append(r.dropped, token)
	}
	return nil
}

func (r *register) RefreshCard(_ context.Context, c rental.Card) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refreshed = append(r.refreshed, c)
	return nil
}
