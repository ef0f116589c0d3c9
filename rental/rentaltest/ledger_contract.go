package rentaltest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// ChargeRecord is one store of charges, as two instances of Motorpool use it.
type ChargeRecord struct {
	Here, There rental.Ledger
	// Creates a client without a card.
	Client func() rental.ClientID
	// Adds a card; the first one is the default.
	GiveCard func(rental.ClientID, rental.Card) rental.Method
	// Sets the default as the client does.
	SetDefault func(rental.ClientID, rental.Method)
	// Adds a charge of a booking of the client.
	Add func(rental.ClientID, rental.Charge) rental.Charge
	// Changes a charge as a change of the booking does.
	Amend  func(rental.Charge, rental.Goal, rental.Minor)
	Charge func(rental.ChargeID) rental.Charge                             // as it is
	Lines  func(rental.BookingID, rental.ChargeKind) []telematics.Activity // oldest first
}

// LedgerContract tests the contract of rental.Ledger. open returns a store for each test.
func LedgerContract(t *testing.T, open func(*testing.T) ChargeRecord) {
	for name, run := range map[string]func(*testing.T, ChargeRecord){
		"AChargeThatIsDueIsTakenOnce":                      takenOnce,
		"AChargeThatIsNotDueIsNotTaken":                    notDue,
		"WhoseWorkerDiedIsTakenAgain":                      diedWorker,
		"AnOldLeaseWritesNothing":                          oldLease,
		"WritingKeepsTheJob":                               writingKeeps,
		"SettlingGivesTheJobBackWithItsLine":               settlingGivesBack,
		"AForbiddenStateIsAnError":                         forbiddenState,
		"AFinalChargeIsNeverDueAgain":                      finalCharge,
		"ANoticeHasTheChargeLookedAtOnItsOldSchedule":      lookedAt,
		"ANoticeWhileAWorkerIsAtItIsNotLost":               lookNotLost,
		"ANoticeAboutNothingOfOursFindsNothing":            nothingOfOurs,
		"TheCardIsTheChargesThenTheDefault":                whichCard,
		"ABarredCardIsNotReturnedAgain":                    barredCard,
		"ANewDefaultWhileTheOldOneIsRefusedIsTriedNext":    newDefaultMeanwhile,
		"WhatIsRefusedWhateverTheCardRests":                hopeless,
		"ANewDefaultIsNotForgottenOverACrash":              newDefaultBefore,
		"ANewDefaultJustBeforeTheOldOneIsTriedIsTriedNext": newDefaultAtLast,
		"AnotherGoalMeanwhileIsAnotherJob":                 anotherGoal,
		"ARefundNamesThePaymentThatItGivesBack":            namesPayment,
		"AttemptsThatChangeNothingAreCounted":              triesCounted,
	} {
		t.Run(name, func(t *testing.T) { run(t, open(t)) })
	}
}

const (
	longLease  = time.Hour
	shortLease = 50 * time.Millisecond
	soonEnough = 20 * time.Second
)

// due returns a charge of a kind that is due now.
func due(k rental.ChargeKind) rental.Charge {
	c := rental.Charge{Kind: k, Number: 1, State: rental.Pending, Currency: "EUR", Amount: 13200, NextAttempt: time.Now().Add(-time.Minute)}
	if k == rental.DepositCharge {
		c.Goal = rental.Hold
	}
	return c
}

func (r ChargeRecord) withCard(k rental.ChargeKind) (rental.ClientID, rental.Method, rental.Charge) {
	client := r.Client()
	card := r.GiveCard(client, NewCard())
	return client, card, r.Add(client, due(k))
}

// newDefault adds a card, and makes it the default.
func (r ChargeRecord) newDefault(client rental.ClientID) rental.Method {
	card := r.GiveCard(client, NewCard())
	r.SetDefault(client, card)
	return card
}

func newIntent() string { return "pi_" + uuid.NewString() }

// confirming is what a worker writes before it confirms a payment with the card of its job.
func confirming(j rental.Job, intent string) rental.Result {
	return rental.Result{State: rental.Unknown, Intent: intent, CountAttempt: true, Card: j.Card}
}

// declinedFor is a decline, and when the next attempt is due.
func declinedFor(wait time.Duration) rental.Result {
	return rental.Result{State: rental.Declined, Declined: true, NextAttempt: time.Now().Add(wait)}
}

// take leases all due charges and returns the job of one. The others stay leased until their leases
// expire.
func take(t *testing.T, l rental.Ledger, id rental.ChargeID, lease time.Duration) (rental.Job, bool) {
	t.Helper()
	jobs, err := l.TakeCharges(t.Context(), 1000, lease)
	require.NoError(t, err)
	for _, j := range jobs {
		if j.ID == id {
			return j, true
		}
	}
	return rental.Job{}, false
}

func mustTake(t *testing.T, l rental.Ledger, id rental.ChargeID) rental.Job {
	t.Helper()
	return mustTakeFor(t, l, id, longLease)
}

func mustTakeFor(t *testing.T, l rental.Ledger, id rental.ChargeID, lease time.Duration) rental.Job {
	t.Helper()
	job, ok := take(t, l, id, lease)
	if !ok {
		t.Fatal("the charge is not due")
	}
	return job
}

func mustNotBeDue(t *testing.T, l rental.Ledger, id rental.ChargeID) {
	t.Helper()
	if job, ok := take(t, l, id, longLease); ok {
		t.Fatalf("the charge is due: %+v", job)
	}
}

type writing func(rental.Job, rental.Result) (bool, error)

func write(t *testing.T, l rental.Ledger) writing {
	return func(j rental.Job, r rental.Result) (bool, error) { return l.WriteCharge(t.Context(), j, r) }
}

func settle(t *testing.T, l rental.Ledger) writing {
	return func(j rental.Job, r rental.Result) (bool, error) { return l.SettleCharge(t.Context(), j, r) }
}

func must(t *testing.T, do writing, j rental.Job, r rental.Result) {
	t.Helper()
	if ok, err := do(j, r); !ok || err != nil {
		t.Fatalf("written: %v, %v", ok, err)
	}
}

func mustNot(t *testing.T, do writing, j rental.Job, r rental.Result) {
	t.Helper()
	if ok, err := do(j, r); ok || err != nil {
		t.Fatalf("written: %v, %v; want it not to be the worker's", ok, err)
	}
}

func takenOnce(t *testing.T, r ChargeRecord) {
	_, card, c := r.withCard(rental.StartCharge)
	job := mustTake(t, r.Here, c.ID)
	if job.Lease == uuid.Nil || job.QueryOnly || job.Card == nil || job.Card.Token != card.Token || job.Amount != c.Amount ||
		job.Customer == "" ||
		job.Reference == "" {
		t.Errorf("job %+v", job)
	}
	mustNotBeDue(t, r.There, c.ID)
}

func notDue(t *testing.T, r ChargeRecord) {
	client := r.Client()
	later, never := due(rental.FeeCharge), due(rental.FeeCharge)
	later.NextAttempt = time.Now().Add(time.Hour)
	never.NextAttempt, never.Number = time.Time{}, 2
	later, never = r.Add(client, later), r.Add(client, never)
	mustNotBeDue(t, r.Here, later.ID)
	mustNotBeDue(t, r.Here, never.ID)
}

func diedWorker(t *testing.T, r ChargeRecord) {
	_, _, c := r.withCard(rental.StartCharge)
	first := mustTakeFor(t, r.Here, c.ID, shortLease)
	second := takeInTime(t, r.There, c.ID)
	if second.Lease == first.Lease {
		t.Error("the lease is the dead worker's")
	}
}

func takeInTime(t *testing.T, l rental.Ledger, id rental.ChargeID) rental.Job {
	t.Helper()
	for began := time.Now(); time.Since(began) < soonEnough; time.Sleep(10 * time.Millisecond) {
		if job, ok := take(t, l, id, longLease); ok {
			return job
		}
	}
	t.Fatal("the charge is not due though its lease has run out")
	return rental.Job{}
}

func oldLease(t *testing.T, r ChargeRecord) {
	_, _, c := r.withCard(rental.StartCharge)
	first := mustTakeFor(t, r.Here, c.ID, shortLease)
	takeInTime(t, r.There, c.ID)
	before := r.Charge(c.ID)
	mustNot(t, write(t, r.Here), first, rental.Result{State: rental.Unknown, Intent: "pi_old", CountAttempt: true})
	mustNot(t, settle(t, r.Here), first, rental.Result{State: rental.Paid, Settled: c.Amount})
	if after := r.Charge(c.ID); after.State != before.State || after.Intent != "" || after.Attempts != 0 || after.Settled != 0 {
		t.Errorf("the dead worker wrote %+v", after)
	}
}

func writingKeeps(t *testing.T, r ChargeRecord) {
	_, card, c := r.withCard(rental.StartCharge)
	job := mustTake(t, r.Here, c.ID)
	intent := newIntent()
	must(t, write(t, r.Here), job, confirming(job, intent))
	mustNotBeDue(t, r.There, c.ID)
	is := r.Charge(c.ID)
	if is.State != rental.Unknown || is.Intent != intent || is.Attempts != 1 || is.Method != card.ID || is.Brand != card.Brand ||
		is.LastFour != card.LastFour {
		t.Errorf("the charge is %+v", is)
	}
	if is.NextAttempt.After(time.Now()) || is.NextAttempt.IsZero() {
		t.Errorf("after a crash no worker would look before %v", is.NextAttempt)
	}
	must(t, settle(t, r.Here), job, rental.Result{State: rental.Unknown, NextAttempt: time.Now().Add(time.Hour), NoChange: true})
}

func settlingGivesBack(t *testing.T, r ChargeRecord) {
	_, card, c := r.withCard(rental.FeeCharge)
	job := mustTake(t, r.Here, c.ID)
	must(t, write(t, r.Here), job, confirming(job, newIntent()))
	paid := time.Now().UTC().Truncate(time.Millisecond)
	line := telematics.Activity{At: paid, Actor: rental.System(), Agency: job.Agency, Vehicle: job.Vehicle, Booking: int64(job.Booking),
		Action: rental.ChargeActivity(rental.FeeCharge), Outcome: telematics.Executed, Details: map[string]any{"amount": "132.00"}}
	must(t, settle(t, r.Here), job, rental.Result{State: rental.Paid, Settled: c.Amount, AttemptID: "ch_1", PaidAt: paid, Activity: &line})
	is := r.Charge(c.ID)
	if is.State != rental.Paid || is.Settled != c.Amount || !is.PaidAt.Equal(paid) || is.AttemptID != "ch_1" || is.Method != card.ID ||
		!is.NextAttempt.IsZero() {
		t.Errorf("the charge is %+v", is)
	}
	lines := r.Lines(c.Booking, rental.FeeCharge)
	if len(lines) != 1 || lines[0].Outcome != telematics.Executed || lines[0].Actor != rental.System() ||
		lines[0].Details["amount"] != "132.00" {
		t.Errorf("lines %+v", lines)
	}
	mustNot(t, settle(t, r.Here), job, rental.Result{State: rental.Paid})
	assert.Equal(t, len(r.Lines(c.Booking, rental.FeeCharge)), 1, "lines")
}

func forbiddenState(t *testing.T, r ChargeRecord) {
	_, _, c := r.withCard(rental.FeeCharge)
	job := mustTake(t, r.Here, c.ID)
	for name, do := range map[string]writing{"written": write(t, r.Here), "settled": settle(t, r.Here)} {
		if ok, err := do(job, rental.Result{State: rental.Captured}); ok || err == nil {
			t.Errorf("a fee was %s as captured: %v, %v", name, ok, err)
		}
	}
	assert.Equal(t, r.Charge(c.ID).State, rental.Pending, "the charge")
}

func finalCharge(t *testing.T, r ChargeRecord) {
	_, _, c := r.withCard(rental.FeeCharge)
	intent := newIntent()
	must(
		t, settle(t, r.Here), mustTake(t, r.Here, c.ID),
		rental.Result{State: rental.Paid, Intent: intent, Settled: c.Amount, NextAttempt: time.Now()},
	)
	if state, woken, err := r.There.WakeCharge(t.Context(), intent); state != rental.Paid || woken || err != nil {
		t.Errorf("WakeCharge = %q, %v, %v", state, woken, err)
	}
	mustNotBeDue(t, r.Here, c.ID)
	// A process died before it noted that it had handled the first one.
	for _, notice := range []string{"evt_1", "evt_1", "evt_2"} {
		if known, err := r.There.Dispute(t.Context(), intent, dispute(notice)); !known || err != nil {
			t.Errorf("Dispute = %v, %v", known, err)
		}
	}
	assert.Equal(t, len(r.Lines(c.Booking, "dispute")), 2, "entries about a dispute")
}

func dispute(notice string) telematics.Activity {
	return telematics.Activity{At: time.Now(), Actor: rental.System(), Action: rental.ChargeDispute, Outcome: telematics.Executed,
		Details: map[string]any{"notice": "charge.dispute.created", "notice_id": notice}}
}

func lookedAt(t *testing.T, r ChargeRecord) {
	_, _, c := r.withCard(rental.FeeCharge)
	intent := newIntent()
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Truncate(time.Millisecond)
	job := mustTake(t, r.Here, c.ID)
	must(t, write(t, r.Here), job, confirming(job, intent))
	must(
		t, settle(t, r.Here), job,
		rental.Result{State: rental.Declined, Declined: true, DeclineCode: "insufficient_funds", NextAttempt: tomorrow},
	)
	mustNotBeDue(t, r.Here, c.ID)
	if state, woken, err := r.There.WakeCharge(t.Context(), intent); state != rental.Declined || !woken || err != nil {
		t.Fatalf("WakeCharge = %q, %v, %v", state, woken, err)
	}
	job = mustTake(t, r.Here, c.ID)
	if !job.QueryOnly || !job.NextAttempt.Equal(tomorrow) || job.Declines != 1 {
		t.Errorf("job %+v", job)
	}
	soon := time.Now().Add(-time.Second)
	must(
		t, settle(t, r.Here), job,
		rental.Result{State: rental.Declined, DeclineCode: "insufficient_funds", NextAttempt: tomorrow, QueryAt: soon, NoChange: true},
	)
	job = mustTake(t, r.Here, c.ID)
	if !job.QueryOnly || job.Tries != 1 {
		t.Errorf("looked at again: %+v", job)
	}
	must(t, settle(t, r.Here), job, rental.Result{State: rental.Declined, DeclineCode: "insufficient_funds", NextAttempt: tomorrow})
	mustNotBeDue(t, r.Here, c.ID)
	if is := r.Charge(c.ID); !is.NextAttempt.Equal(tomorrow) || is.Declines != 1 {
		t.Errorf("the charge is %+v", is)
	}
}

func lookNotLost(t *testing.T, r ChargeRecord) {
	_, _, c := r.withCard(rental.FeeCharge)
	intent := newIntent()
	job := mustTake(t, r.Here, c.ID)
	must(t, write(t, r.Here), job, confirming(job, intent))
	if _, woken, err := r.There.WakeCharge(t.Context(), intent); !woken || err != nil {
		t.Fatalf("WakeCharge = %v, %v", woken, err)
	}
	must(t, settle(t, r.Here), job, rental.Result{State: rental.RequiresAction})
	if job := mustTake(t, r.Here, c.ID); !job.QueryOnly {
		t.Errorf("job %+v", job)
	}
}

func nothingOfOurs(t *testing.T, r ChargeRecord) {
	for _, object := range []string{"pi_" + uuid.NewString(), "", "pi_\x00"} {
		if state, woken, err := r.Here.WakeCharge(t.Context(), object); state != "" || woken || err != nil {
			t.Errorf("WakeCharge(%q) = %q, %v, %v", object, state, woken, err)
		}
	}
	if known, err := r.Here.Dispute(t.Context(), "pi_"+uuid.NewString(), dispute("evt_1")); known || err != nil {
		t.Errorf("Dispute = %v, %v", known, err)
	}
}

func triesCounted(t *testing.T, r ChargeRecord) {
	_, _, c := r.withCard(rental.FeeCharge)
	for tries := range 3 {
		job := mustTake(t, r.Here, c.ID)
		assert.Equal(t, job.Tries, tries, "tries")
		must(t, settle(t, r.Here), job, rental.Result{State: rental.Pending, NextAttempt: time.Now().Add(-time.Second), NoChange: true})
	}
	must(t, settle(t, r.Here), mustTake(t, r.Here, c.ID), rental.Result{State: rental.Declined, NextAttempt: time.Now().Add(-time.Second)})
	assert.Equal(t, mustTake(t, r.Here, c.ID).Tries, 0, "attempts after a change")
}
