package rentals

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/rental/rentaltest"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var (
	_ rental.Ledger  = (*fixture)(nil)
	_ rental.Notices = (*fixture)(nil)
)

func TestPostgres_KeepsTheContractOfCharges(t *testing.T) {
	address := storetest.NewDatabase(t)
	here, there := open(t, address), open(t, address)
	m := newMarket(t, here)
	rentaltest.LedgerContract(t, func(t *testing.T) rentaltest.ChargeRecord {
		return rentaltest.ChargeRecord{
			Here: here, There: there,
			Client: m.client, GiveCard: m.giveCard, SetDefault: m.setDefault, Add: m.add, Amend: m.amend, Charge: m.charge,
			Lines: func(b rental.BookingID, k rental.ChargeKind) []telematics.Activity {
				lines, err := here.Activities(t.Context(), telematics.ActivityQuery{Booking: int64(b), Action: rental.ChargeActivity(k)})
				require.NoError(t, err)
				return lines
			},
		}
	})
}

func TestPostgres_KeepsTheContractOfNotices(t *testing.T) {
	address := storetest.NewDatabase(t)
	here, there := open(t, address), open(t, address)
	rentaltest.NoticesContract(t, func(*testing.T) rentaltest.NoticeRecord {
		return rentaltest.NoticeRecord{Here: here, There: there}
	})
}

// market creates clients, cards, bookings and charges in the database.
type market struct {
	t       testing.TB
	p       *fixture
	vehicle telematics.VehicleID
}

func newMarket(t testing.TB, p *fixture) *market {
	m := &market{t: t, p: p}
	m.vehicle, _ = storetest.Vehicles(t, p.DB)()
	return m
}

func (m *market) get(into any, query string, args ...any) {
	m.t.Helper()
	require.NoError(m.t, m.p.Pool.Get(into, query, args...))
}

func (m *market) exec(query string, args ...any) {
	m.t.Helper()
	storetest.Exec(m.t, m.p.Pool, query, args...)
}

func (m *market) client() rental.ClientID {
	id := newCardholder(m.t, m.p).client.ID
	_, err := m.p.SetCustomer(context.Background(), id, rentaltest.CustomerOf(id))
	require.NoError(m.t, err)
	return id
}

// holder returns a client of the market.
func (m *market) holder(client rental.ClientID) cardholder {
	return cardholder{m.p, m.t, rental.Client{ID: client}}
}

func (m *market) giveCard(client rental.ClientID, c rental.Card) rental.Method {
	added, err := m.holder(client).put(c, false)
	require.NoError(m.t, err)
	return added.Method
}

func (m *market) setDefault(client rental.ClientID, method rental.Method) {
	require.NoError(m.t, m.holder(client).makeDefault(method.ID))
}

func (m *market) booking(client rental.ClientID) rental.BookingID {
	return bookWith(m.t, m.p, m.vehicle, client, 0, rental.Cancelled)
}

func (m *market) add(client rental.ClientID, c rental.Charge) rental.Charge {
	if c.Booking == 0 {
		c.Booking = m.booking(client)
	}
	c.ID, c.Created = uuid.New(), time.Now().UTC()
	m.exec(`
		insert into charges (id, booking_id, kind, number, state, currency, amount, settled, goal, capture_amount, refunds_charge_id,
		next_attempt_at, created_at)
		values ($1, $2, $3, $4, $5, $6, $7, $8, nullif($9, ''), $10, $11, $12, $13)`,
		c.ID, c.Booking, c.Kind, c.Number, c.State, c.Currency, c.Amount, c.Settled, c.Goal, c.CaptureAmount,
		pg.Nullable(c.Refunds), pg.Timestamp(c.NextAttempt), c.Created,
	)
	return c
}

func (m *market) amend(c rental.Charge, g rental.Goal, amount rental.Minor) {
	m.exec(`update charges set goal = $2, capture_amount = $3, woken_at = now(), next_attempt_at = now() where id = $1`, c.ID, g, amount)
}

func (m *market) charge(id rental.ChargeID) rental.Charge {
	var row chargeRow
	_, err := pg.One(m.t.Context(), m.p.Pool, row.fields(), `select `+chargeColumns+` from charges c where c.id = $1`, id)
	require.NoError(m.t, err)
	return row.charge()
}

func TestCharge_IsReadAsWritten(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	m := newMarket(t, p)
	client := m.client()
	card := m.giveCard(client, rentaltest.NewCard())
	c := m.add(
		client,
		rental.Charge{
			Kind: rental.DepositCharge, Number: 1, State: rental.Authorized, Currency: "JPY", Amount: 5000,
			Settled: 5000, Goal: rental.Capture, CaptureAmount: 300,
		},
	)
	at := time.Date(2026, 1, 2, 10, 0, 0, 250_000_000, time.UTC)
	m.exec(
		`update charges set fee = 'cleaning', reason = 'mud', payment_method_id = $2, brand = 'amex', last_four = '0005', intent = 'pi_1',
			seen = 'ch_1',
		attempts = 3, declines = 2, decline_code = 'insufficient_funds', next_attempt_at = $3, paid_at = $3, created_at = $3 where id = $1`,
		c.ID, card.ID, at,
	)
	want := rental.Charge{
		ID: c.ID, Booking: c.Booking, Kind: rental.DepositCharge, Number: 1, State: rental.Authorized, Currency: "JPY",
		Amount: 5000, Settled: 5000, Goal: rental.Capture, CaptureAmount: 300, Fee: "cleaning", Reason: "mud",
		Method: card.ID, Brand: "amex", LastFour: "0005", Intent: "pi_1", AttemptID: "ch_1", Attempts: 3, Declines: 2,
		DeclineCode: "insufficient_funds", NextAttempt: at, PaidAt: at, Created: at,
	}
	if got := m.charge(c.ID); got != want {
		t.Errorf("read as %+v\nwant    %+v", got, want)
	}
}

func TestTakeCharges_ConcurrentWorkersTakeEachOnce(t *testing.T) {
	address := storetest.NewDatabase(t)
	p := open(t, address)
	m := newMarket(t, p)
	client := m.client()
	const charges, workers = 24, 8
	booking := m.booking(client)
	for n := range charges {
		m.add(
			client,
			rental.Charge{
				Booking: booking, Kind: rental.FeeCharge, Number: n + 1, State: rental.Pending, Currency: "EUR",
				Amount: 100, NextAttempt: time.Now().Add(-time.Minute),
			},
		)
	}
	taken := make(chan rental.ChargeID, 2*charges)
	errs := make(chan error, workers)
	for range workers {
		go func() {
			for {
				jobs, err := p.TakeCharges(context.Background(), 7, time.Hour)
				if err != nil || len(jobs) == 0 {
					errs <- err
					return
				}
				for _, j := range jobs {
					taken <- j.ID
				}
			}
		}()
	}
	for range workers {
		assert.NoError(t, <-errs)
	}
	close(taken)
	times := map[rental.ChargeID]int{}
	for id := range taken {
		times[id]++
	}
	// A worker stops when others have locked all remaining charges. Charges that were released
	// after that are taken here.
	rest, err := p.TakeCharges(t.Context(), charges, time.Hour)
	require.NoError(t, err)
	for _, j := range rest {
		times[j.ID]++
	}
	assert.Equal(t, len(times), charges, "charges taken")
	for id, n := range times {
		assert.Equal(t, n, 1, "how often charge %s was taken", id)
	}
}

func TestSettleCharge_SeesADefaultThatIsBeingSet(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	m := newMarket(t, p)
	client := m.client()
	m.giveCard(client, rentaltest.NewCard())
	other := m.giveCard(client, rentaltest.NewCard())
	c := m.add(
		client,
		rental.Charge{
			Kind: rental.FeeCharge, Number: 1, State: rental.Pending, Currency: "EUR", Amount: 100,
			NextAttempt: time.Now().Add(-time.Minute),
		},
	)
	jobs, err := p.TakeCharges(t.Context(), 1, time.Hour)
	if err != nil || len(jobs) != 1 {
		t.Fatalf("%d jobs, %v", len(jobs), err)
	}
	if ok, err := p.WriteCharge(t.Context(), jobs[0],
		rental.Result{State: rental.Unknown, Intent: "pi_1", CountAttempt: true, Card: jobs[0].Card}); !ok || err != nil {
		t.Fatalf("WriteCharge = %v, %v", ok, err)
	}
	tx := storetest.Begin(t, p.Pool)
	storetest.Exec(t, tx, `update clients set default_payment_method_id = $2 where id = $1`, client, other.ID)
	settled := make(chan error, 1)
	go func() {
		ok, err := p.SettleCharge(
			context.Background(), jobs[0],
			rental.Result{State: rental.Declined, Declined: true, NextAttempt: time.Now().Add(time.Hour)},
		)
		if err == nil && !ok {
			err = fmt.Errorf("the lease of the job was lost")
		}
		settled <- err
	}()
	storetest.WaitForLock(t, p.DB)
	require.NoError(t, tx.Commit())
	require.NoError(t, <-settled)
	if is := m.charge(c.ID); is.Method != other.ID || is.NextAttempt.After(time.Now()) || is.Declines != 0 {
		t.Errorf("the charge is %+v, want it due with the new default", is)
	}
}

func TestForgetNotices_OldHandledOnes(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	for _, id := range []string{"old", "open", "new"} {
		require.NoError(t, p.Keep(t.Context(), rental.Notice{ID: id, Type: "charge.updated", Object: "ch_1", Kind: rental.AboutOther}))
		if id == "open" {
			continue
		}
		require.NoError(t, p.Handled(t.Context(), id, time.Time{}))
	}
	storetest.Exec(t, p.Pool, `update processor_notices set received_at = received_at - interval '31 days' where id <> 'new'`)
	for _, more := range []bool{true, false} {
		if got, err := ForgetNotices(t.Context(), p.DB, 1); got != more || err != nil {
			t.Errorf("Forget = %v, %v; want %v", got, err, more)
		}
	}
	var left []string
	require.NoError(t, p.Pool.Select(&left, `select id from processor_notices order by id`))
	if len(left) != 2 || left[0] != "new" || left[1] != "open" {
		t.Errorf("left are the notices %v, want new and open", left)
	}
}

func TestStuck_CountsUnknownChargesAfterSeveralQueries(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	m := newMarket(t, p)
	client := m.client()
	for tries, state := range map[int]rental.ChargeState{4: rental.Unknown, 5: rental.Unknown, 6: rental.Unknown, 7: rental.Pending} {
		c := m.add(
			client,
			rental.Charge{Kind: rental.FeeCharge, Number: 1, State: state, Currency: "EUR", Amount: 100, NextAttempt: time.Now()},
		)
		m.exec(`update charges set tries = $2 where id = $1`, c.ID, tries)
	}
	// One of two refunds is at the processor, whose bank has not executed it yet.
	paid := m.add(client, rental.Charge{Kind: rental.FeeCharge, Number: 1, State: rental.Paid, Currency: "EUR", Amount: 100})
	for n, intent := range []any{nil, "re_1"} {
		c := m.add(client, rental.Charge{
			Kind: rental.RefundCharge, Number: n + 1, State: rental.Unknown, Currency: "EUR", Amount: 1, Refunds: paid.ID,
			NextAttempt: time.Now(),
		})
		m.exec(`update charges set tries = 7, intent = $2 where id = $1`, c.ID, intent)
	}
	if n, err := (Charges{DB: p.DB}).Stuck(t.Context()); err != nil || n != 3 {
		t.Errorf("Stuck = %d, %v; want 3", n, err)
	}
}

// Charges, notices and transitions that were due or leased by a clock that had leapt ahead are due
// again.
func TestCorrectTimes_WhatIsDueLaterThanItCanBeIsDueNow(t *testing.T) {
	p := open(t, storetest.NewDatabase(t))
	m := newMarket(t, p)
	client, far := m.client(), time.Now().AddDate(74, 0, 0)
	due := m.add(
		client,
		rental.Charge{Kind: rental.FeeCharge, Number: 1, State: rental.Pending, Currency: "EUR", Amount: 100, NextAttempt: far},
	)
	leased := m.add(
		client,
		rental.Charge{Kind: rental.FeeCharge, Number: 2, State: rental.Pending, Currency: "EUR", Amount: 100, NextAttempt: time.Now()},
	)
	m.exec(`update charges set lease = gen_random_uuid(), lease_until = $2 where id = $1`, leased.ID, far)
	m.add(
		client,
		rental.Charge{
			Kind: rental.FeeCharge, Number: 3, State: rental.Declined, Currency: "EUR", Amount: 100,
			NextAttempt: time.Now().AddDate(0, 0, 7),
		},
	)
	require.NoError(t, p.Keep(t.Context(), rental.Notice{ID: "n", Type: "charge.updated", Object: "ch_1", Kind: rental.AboutOther}))
	m.exec(`update processor_notices set due_at = $1`, far)
	m.exec(`
		insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content, due_at, lease, lease_until)
		select gen_random_uuid(), id, 'start', 'open', 'pay', now(), '{}', '{}', now(), gen_random_uuid(), $1 from bookings limit 1`, far)
	if n, err := CorrectTimes(t.Context(), p.DB); err != nil || n != 4 {
		t.Errorf("CorrectTimes = %d, %v; want 4", n, err)
	}
	if taken, err := (Transitions{DB: p.DB}).TakeTransitions(t.Context(), 10, time.Minute); err != nil || len(taken) != 1 {
		t.Errorf("%d transitions are due (%v), want 1", len(taken), err)
	}
	jobs, err := p.TakeCharges(t.Context(), 10, time.Minute)
	if err != nil || len(jobs) != 2 || !slices.ContainsFunc(jobs, func(j rental.Job) bool { return j.ID == due.ID }) {
		t.Errorf("%d charges are due (%v), want the two whose times were corrected", len(jobs), err)
	}
	if notices, err := p.TakeNotices(t.Context(), 10, time.Minute); err != nil || len(notices) != 1 {
		t.Errorf("%d notices are due (%v), want 1", len(notices), err)
	}
	if n, err := CorrectTimes(t.Context(), p.DB); err != nil || n != 0 {
		t.Errorf("a second time: %d, %v; want none", n, err)
	}
}
