package rentals

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/store/storetest"
)

func TestPayments_AreListedUntilAChargeHasThem(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	m := newMarket(t, p)
	payments := Payments{DB: p.DB}
	earlier := m.add(m.client(), rental.Charge{Kind: rental.FeeCharge, Number: 1, State: rental.Paid, Currency: "EUR", Amount: 100})
	m.exec(`update charges set payment_key = null where id = $1`, earlier.ID)
	keyed := m.add(m.client(), rental.Charge{Kind: rental.FeeCharge, Number: 1, State: rental.Paid, Currency: "EUR", Amount: 100})
	key, lost := uuid.New(), uuid.New()
	m.exec(`update charges set payment_key = $2 where id = $1`, keyed.ID, key)

	// A charge with a key has this identity alone.
	without, err := payments.WithoutCharge(t.Context(), []uuid.UUID{earlier.ID, key, keyed.ID, lost})
	if err != nil || len(without) != 2 || without[0] != keyed.ID && without[1] != keyed.ID || without[0] != lost && without[1] != lost {
		t.Errorf("without a charge are %v, %v; want %v and %v", without, err, keyed.ID, lost)
	}
	if without, err := payments.WithoutCharge(t.Context(), nil); err != nil || len(without) != 0 {
		t.Errorf("of none, %v, %v", without, err)
	}

	wants := func(n int, oldest time.Time) {
		t.Helper()
		if is, err := payments.Unrecorded(t.Context()); err != nil || is != n {
			t.Errorf("%d unrecorded payments, %v; want %d", is, err, n)
		}
		if is, err := payments.OldestUnrecorded(t.Context()); err != nil || !is.Equal(oldest) {
			t.Errorf("the oldest is of %v, %v; want %v", is, err, oldest)
		}
	}
	wants(0, time.Time{})
	day := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	listed := func(id string, payment uuid.UUID, days int) rental.ListedIntent {
		return rental.ListedIntent{
			Intent: rental.Intent{
				ID: id, Status: rental.IntentSucceeded, Amount: 500, Currency: "EUR",
			},
			Payment: payment, Customer: "cus_1", Refunded: 100, Created: day.AddDate(0, 0, days),
			Metadata: map[string]string{rental.MetaBooking: "BK-1", rental.MetaKind: "fee"},
		}
	}
	list := func(since int, found []rental.ListedIntent, want ...string) {
		t.Helper()
		added, err := payments.ListUnrecorded(t.Context(), day.AddDate(0, 0, since), found)
		if err != nil || len(added) != len(want) {
			t.Fatalf("added %v, %v; want %v", added, err, want)
		}
		for i := range want {
			if added[i].ID != want[i] {
				t.Errorf("added %v, want %v", added, want)
			}
		}
	}
	later := uuid.New()
	list(0, []rental.ListedIntent{listed("pi_1", lost, 0), listed("pi_2", later, 2)}, "pi_1", "pi_2")
	wants(2, day)
	var amount int64
	m.get(
		&amount,
		`select amount from unrecorded_payments where intent = 'pi_1' and booking = 'BK-1' and kind = 'fee' and customer = 'cus_1'`,
	)
	assert.Equal(t, amount, 400, "the listed amount")
	// A later window leaves older payments.
	list(1, []rental.ListedIntent{listed("pi_2", later, 2), listed("pi_3", uuid.New(), 3)}, "pi_3")
	wants(3, day)
	list(1, nil)
	wants(1, day)
	// A charge that is made again has the payment.
	m.exec(`update charges set payment_key = $2 where id = $1`, keyed.ID, lost)
	wants(0, day)
	list(0, nil)
	wants(0, time.Time{})
}

func TestRefundedLess_ComparesWhatIsOnRecord(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	m := newMarket(t, p)
	client := m.client()
	paid := m.add(
		client,
		rental.Charge{Kind: rental.FeeCharge, Number: 1, State: rental.Paid, Currency: "EUR", Amount: 1000, Settled: 1000},
	)
	deposit := m.add(
		client,
		rental.Charge{
			Kind: rental.DepositCharge, Number: 1, State: rental.Captured, Currency: "EUR", Amount: 1000, Settled: 100,
			Goal: rental.Capture, CaptureAmount: 100,
		},
	)
	for i, r := range []rental.Charge{
		{State: rental.Paid, Amount: 100, Settled: 101},
		{State: rental.Unknown, Amount: 200},
		{State: rental.Failed, Amount: 400},
	} {
		r.Kind, r.Booking, r.Number, r.Currency, r.Refunds = rental.RefundCharge, paid.Booking, i+1, "EUR", paid.ID
		m.add(client, r)
	}
	payments := Payments{DB: p.DB}
	for refunded, want := range map[rental.Minor]int{301: 0, 302: 1} {
		less, err := payments.RefundedLess(t.Context(), map[uuid.UUID]rental.Minor{paid.ID: refunded, deposit.ID: 900, uuid.New(): 100})
		if err != nil || len(less) != want || want == 1 && less[paid.ID] != 301 {
			t.Errorf("of %d refunded: %v, %v; want %d payments with 301 on record", refunded, less, err, want)
		}
	}
}
