package charging_test

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/charging"
	"motorpool/rental/rentaltest"
	"motorpool/simulator/sandbox"
)

// paymentRecord is a record of charges that may have lost some.
type paymentRecord struct {
	mu       sync.Mutex
	charges  map[uuid.UUID]bool
	refunded map[uuid.UUID]rental.Minor
	listed   []rental.ListedIntent
}

func (p *paymentRecord) Installation(context.Context) (string, error) { return "ours", nil }

func (p *paymentRecord) WithoutCharge(_ context.Context, payments []uuid.UUID) ([]uuid.UUID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(payments), func(id uuid.UUID) bool { return p.charges[id] }), nil
}

func (p *paymentRecord) RefundedLess(_ context.Context, refunded map[uuid.UUID]rental.Minor) (map[uuid.UUID]rental.Minor, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	less := map[uuid.UUID]rental.Minor{}
	for payment, amount := range refunded {
		if p.charges[payment] && p.refunded[payment] < amount {
			less[payment] = p.refunded[payment]
		}
	}
	return less, nil
}

func (p *paymentRecord) ListUnrecorded(
	_ context.Context, since time.Time, found []rental.ListedIntent,
) (added []rental.ListedIntent, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.listed
	p.listed = append(
		slices.DeleteFunc(slices.Clone(before), func(i rental.ListedIntent) bool { return !i.Created.Before(since) }),
		found...)
	return slices.DeleteFunc(slices.Clone(found), func(i rental.ListedIntent) bool {
		return slices.ContainsFunc(before, func(b rental.ListedIntent) bool { return b.ID == i.ID })
	}), nil
}

func (p *paymentRecord) OldestUnrecorded(context.Context) (oldest time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, i := range p.listed {
		if oldest.IsZero() || i.Created.Before(oldest) {
			oldest = i.Created
		}
	}
	return oldest, nil
}

// lostPayments is a bank, a record, and a reconciler in virtual time.
type lostPayments struct {
	*testing.T
	bank       *rentaltest.Bank
	record     *paymentRecord
	log        bytes.Buffer
	lease      atomic.Bool // no other instance has it
	reconciler *charging.Reconciler
}

func withLostPayments(t *testing.T, test func(*lostPayments)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &lostPayments{T: t, bank: rentaltest.NewBank(t), record: &paymentRecord{charges: map[uuid.UUID]bool{}}}
		l.bank.Issue(rental.Card{Token: "pm_1"}, "cus_1", sandbox.Behaviour{})
		l.lease.Store(true)
		l.reconciler = charging.NewReconciler(charging.ReconcilerConfig{
			Processor: l.bank, Payments: l.record, TryLease: func(context.Context) (bool, error) { return l.lease.Load(), nil },
			Logger: slog.New(slog.NewTextHandler(&l.log, &slog.HandlerOptions{Level: slog.LevelError})),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- l.reconciler.Run(ctx) }()
		test(l)
		cancel()
		assert.NoError(t, <-ended)
	})
}

// pays takes a payment of an installation, and returns its identity and its id.
func (l *lostPayments) pays(installation string, hold bool) (uuid.UUID, string) {
	l.Helper()
	r := rental.IntentRequest{
		Payment: uuid.New(), Customer: "cus_1", Amount: amount, Currency: "EUR", Hold: hold,
		Metadata: map[string]string{rental.MetaInstallation: installation},
	}
	made, err := l.bank.CreateIntent(l.Context(), r.Payment.String(), r)
	if err == nil {
		_, err = l.bank.Confirm(l.Context(), "confirm "+r.Payment.String(), made.ID, "pm_1")
	}
	require.NoError(l, err)
	return r.Payment, made.ID
}

func (l *lostPayments) recorded(payment uuid.UUID) {
	l.record.mu.Lock()
	defer l.record.mu.Unlock()
	l.record.charges[payment] = true
}

// after checks which payments are listed after a time.
func (l *lostPayments) after(d time.Duration, want ...string) {
	l.Helper()
	time.Sleep(d)
	synctest.Wait()
	l.record.mu.Lock()
	defer l.record.mu.Unlock()
	var listed []string
	for _, i := range l.record.listed {
		listed = append(listed, i.ID)
	}
	slices.Sort(listed)
	slices.Sort(want)
	if !slices.Equal(listed, want) {
		l.Fatalf("listed are the payments %q, want %q", listed, want)
	}
}

func TestReconciler_ListsPaymentsWithoutACharge(t *testing.T) {
	withLostPayments(t, func(l *lostPayments) {
		_, lost := l.pays("ours", false)
		for range 100 { // more than a page
			payment, _ := l.pays("ours", false)
			l.recorded(payment)
		}
		l.pays("another", false)
		_, held := l.pays("ours", true)
		r := rental.IntentRequest{
			Payment: uuid.New(), Customer: "cus_1", Amount: amount, Currency: "EUR",
			Metadata: map[string]string{rental.MetaInstallation: "ours"},
		}
		// One that has moved no money.
		_, err := l.bank.CreateIntent(l.Context(), "prepared", r)
		require.NoError(t, err)
		l.after(4 * time.Minute)
		l.after(2*time.Minute, lost, held)
		for _, id := range []string{lost, held} {
			if strings.Count(l.log.String(), "intent="+id+" status=") != 1 {
				t.Errorf("the log does not name %s once: %s", id, &l.log)
			}
		}
		if !strings.Contains(l.log.String(), "amount=13200 currency=EUR customer=cus_1") {
			t.Errorf("the log has no amount, currency and customer: %s", &l.log)
		}
		// It is logged once, listed until it is refunded, released or recorded.
		l.after(time.Hour, lost, held)
		if n := strings.Count(l.log.String(), "no charge on record"); n != 2 {
			t.Errorf("%d log messages of two payments: %s", n, &l.log)
		}
		_, err = l.bank.Refund(l.Context(), "refund",
			rental.RefundRequest{Refund: uuid.New(), Intent: lost, Amount: amount, Currency: "EUR"})
		require.NoError(t, err)
		_, err = l.bank.Cancel(l.Context(), "cancel", held)
		require.NoError(t, err)
		l.after(16 * time.Minute)
	})
}

// What the processor has refunded, and the record has not, is in the log once.
func TestReconciler_LogsRefundsThatAreNotOnRecord(t *testing.T) {
	withLostPayments(t, func(l *lostPayments) {
		refund := func(intent string, m rental.Minor) {
			t.Helper()
			_, err := l.bank.Refund(l.Context(), uuid.NewString(),
				rental.RefundRequest{Refund: uuid.New(), Intent: intent, Amount: m, Currency: "EUR"})
			require.NoError(t, err)
		}
		lost, lostID := l.pays("ours", false)
		recorded, recordedID := l.pays("ours", false)
		_, elsewhere := l.pays("another", false)
		for _, intent := range []string{lostID, recordedID, elsewhere} {
			refund(intent, 2000)
		}
		l.recorded(lost)
		l.recorded(recorded)
		l.record.mu.Lock()
		l.record.refunded = map[uuid.UUID]rental.Minor{lost: 500, recorded: 2000}
		l.record.mu.Unlock()
		l.after(time.Hour)
		const message = "more refunded at the processor than on record"
		if text := l.log.String(); strings.Count(text, message) != 1 ||
			!strings.Contains(text, "intent="+lostID+" currency=EUR refunded=2000 recorded=500") {
			t.Errorf("the log has not what was refunded of %s: %s", lostID, text)
		}
		refund(lostID, 100)
		l.after(26 * time.Hour)
		assert.Equal(t, strings.Count(l.log.String(), message), 2, "another lost refund: messages")
	})
}

// A payment of long ago is listed after a start or a failover; one of two days by each night.
func TestReconciler_ComparesAfterAFailoverAndEachNight(t *testing.T) {
	withLostPayments(t, func(l *lostPayments) {
		payment, old := l.pays("ours", false)
		l.recorded(payment)
		l.after(20 * 24 * time.Hour)
		_, fresh := l.pays("ours", false)
		l.record.mu.Lock()
		delete(l.record.charges, payment) // the record was set back
		l.record.mu.Unlock()
		l.after(24*time.Hour, fresh) // by night
		l.reconciler.CommitsMayBeLost()
		l.after(4*time.Minute, fresh)
		l.after(2*time.Minute, fresh, old)
	})
}

func TestReconciler_TriesAgainWhereTheProcessorIsUnavailable(t *testing.T) {
	withLostPayments(t, func(l *lostPayments) {
		_, first := l.pays("ours", false)
		for range 100 {
			l.pays("another", false)
		}
		var failing atomic.Bool
		failing.Store(true)
		// The second page fails: the first alone lists nothing.
		l.bank.FailWith(func(c rentaltest.Call) rentaltest.Fault {
			if failing.Load() && c.Method == "Intents" && c.About != "" {
				return rentaltest.Fault{Kind: sandbox.HangBefore}
			}
			return rentaltest.Fault{}
		})
		l.after(9 * time.Minute)
		failing.Store(false)
		l.after(7*time.Minute, first)
	})
}

func TestReconciler_OneInstanceCompares(t *testing.T) {
	withLostPayments(t, func(l *lostPayments) {
		_, lost := l.pays("ours", false)
		l.lease.Store(false)
		l.after(100 * time.Minute)
		assert.EqualSlices(t, l.bank.Asked("Intents"), nil, "an instance without the lease compares")
		l.lease.Store(true)
		l.after(24*time.Hour, lost)
	})
}
