package rentals

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// declinedExtension books vehicle 1 for an hour, begins that, and extends it by four hours, for
// which the card is declined.
func (w *rentalWorld) declinedExtension() (rental.BookingDetails, rental.Charge) {
	w.t.Helper()
	w.exec(`update agencies set payment_wait = '10 minutes'`)
	d := w.book(draft(1, 1, 2))
	w.amend(rental.BookingStart, d.ID, noon, beginAt(noon))
	w.exec(`update charges set state = 'paid', settled = amount, next_attempt_at = null where kind = 'start'`)
	w.exec(`update charges set state = 'authorized', settled = amount, next_attempt_at = null where kind = 'deposit'`)
	d = w.amend(
		rental.BookingExtend, d.ID, noon,
		func(d rental.BookingDetails) (rental.Change, error) {
			return d.Extend(noon, d.End.Add(4*time.Hour), telematics.Client)
		},
	)
	job := w.takeOne()
	if job.MendFor == nil || *job.MendFor != rental.DefaultPaymentWait || !job.MendBy.IsZero() || job.Added != 4*time.Hour {
		w.t.Fatalf("the job of the extension %+v, want it mended within %v of its refusal", job, rental.DefaultPaymentWait)
	}
	w.settle(job, rental.Result{State: rental.Declined, DeclineCode: "insufficient_funds", NextAttempt: noon.Add(time.Minute)})
	return d, job.Charge
}

// takeOne leases the only charge that is due.
func (w *rentalWorld) takeOne() rental.Job {
	w.t.Helper()
	jobs, err := w.here.TakeCharges(w.t.Context(), 10, time.Minute)
	if err != nil || len(jobs) != 1 {
		w.t.Fatalf("%d jobs, %v; want one", len(jobs), err)
	}
	return jobs[0]
}

func (w *rentalWorld) settle(job rental.Job, r rental.Result) {
	w.t.Helper()
	if ok, err := w.here.SettleCharge(w.t.Context(), job, r); !ok || err != nil {
		w.t.Fatalf("settled %v, %v", ok, err)
	}
}

func TestExtension_TakenBackFreesTheVehicle(t *testing.T) {
	w := newRentalWorld(t)
	d, _ := w.declinedExtension()
	if _, _, err := w.here.OpenBooking(t.Context(), draft(1, 3, 4),
		asks(operator, rental.BookingCreate, 0, noon)); codeOf(err) != rental.VehicleNotAvailable {
		t.Fatalf("a booking in the extended time: %v, want %s", err, rental.VehicleNotAvailable)
	}
	w.settle(w.takeOne(), rental.Result{State: rental.Released, DeclineCode: "insufficient_funds"})
	w.book(draft(1, 3, 4))
	is, err := w.here.BookingDetails(t.Context(), d.ID)
	if err != nil || !is.End.Equal(d.End.Add(-4*time.Hour)) || is.Price.Hours != 100 || is.State != rental.Active {
		t.Errorf("booking %+v, %v; want an hour at its price", is.Booking, err)
	}
	if paid := is.Payment(); paid.Status != rental.PaymentPaid {
		t.Errorf("payment %+v, want nothing owed", paid)
	}
}

// A rental that was only held is extended for longer than a hold lasts, and that is refused; then
// the hold ends, and the extension is taken back: the price from before is charged.
func TestExtension_TakenBackWithoutAHoldIsNotCharged(t *testing.T) {
	w := newRentalWorld(t)
	d := w.onlyHeld()
	extended := w.amend(rental.BookingExtend, d.ID, noon, func(d rental.BookingDetails) (rental.Change, error) {
		return d.Extend(noon, d.End.Add(3*24*time.Hour), telematics.Client)
	})
	w.settle(w.takeOne(), rental.Result{State: rental.Declined, DeclineCode: "insufficient_funds"})
	w.exec(`update charges set look_at = case kind when 'deposit' then now() end, next_attempt_at = null`)
	w.settle(w.takeOne(), rental.Result{State: rental.Released, DeclineCode: rental.CodeExpired})
	w.exec(`update charges set mend_by = now(), look_at = now() where kind = 'extension'`)
	w.settle(w.takeOne(), rental.Result{State: rental.Released, DeclineCode: "insufficient_funds"})
	if job := w.takeOne(); job.Kind != rental.StartCharge || job.Amount != d.Price.Rental() {
		t.Errorf("%s of %d is charged; want %d, not %d", job.Kind, job.Amount, d.Price.Rental(), extended.Price.Rental())
	}
}

// onlyHeld is a rental of five days whose start only held the deposit.
func (w *rentalWorld) onlyHeld() rental.BookingDetails {
	w.t.Helper()
	w.setTariffs(map[string]*rental.Plan{"compact": {Category: "compact", Hour: 1_000, Deposit: 20_000}})
	d := w.book(draft(1, 0, 5*24))
	w.amend(rental.BookingStart, d.ID, noon, beginAt(noon))
	w.exec(`delete from charges where kind = 'start'`)
	w.exec(`update charges set state = 'authorized', settled = amount, next_attempt_at = null, intent = 'pi_deposit'`)
	return d
}

// The rental ends while the payment of its extension is being cancelled: the time was used.
func TestExtension_TakenBackAfterTheEndIsChargedThen(t *testing.T) {
	w := newRentalWorld(t)
	d, extension := w.declinedExtension()
	w.exec(`update charges set state = 'released', settled = 0 where kind = 'deposit'`)
	w.exec(`update charges set mend_by = now(), look_at = now() where id = $1`, extension.ID)
	job := w.takeOne()
	w.amend(rental.BookingEnd, d.ID, noon, func(d rental.BookingDetails) (rental.Change, error) { return d.Finish(noon.Add(time.Hour)) })
	w.settle(job, rental.Result{State: rental.Released, DeclineCode: "insufficient_funds"})
	is, err := w.here.BookingDetails(t.Context(), d.ID)
	last := is.Charges[len(is.Charges)-1]
	if err != nil || last.Kind != rental.EndCharge || last.Amount != extension.Amount {
		t.Errorf("the last charge %+v, %v; want %d at the end", last, err, extension.Amount)
	}
}

// The deposit is held until the payments for the rental's time have a result, and pays what the
// card does not. A card that comes meanwhile pays nothing twice.
func TestDeposit_PaysWhatTheCardDoesNot(t *testing.T) {
	w := newRentalWorld(t)
	d, extension := w.declinedExtension()
	w.amend(rental.BookingEnd, d.ID, noon, finishAt(noon.Add(time.Hour)))
	_, _, err := w.here.SetDefault(t.Context(), w.clientOf("anna"), w.master, asks(anna, rental.MethodDefault, 0, noon).Activity, nil)
	require.NoError(t, err)
	job := w.takeOne()
	if job.ID != extension.ID || job.Goal != rental.Release {
		t.Fatalf("the job %+v, want the extension withdrawn", job)
	}
	w.settle(job, rental.Result{State: rental.Released})
	job = w.takeOne()
	if job.Kind != rental.DepositCharge || job.Goal != rental.Capture || job.CaptureAmount != extension.Amount {
		t.Fatalf("the job %+v, want %d of the deposit", job, extension.Amount)
	}
	w.settle(job, rental.Result{State: rental.Captured, Settled: job.CaptureAmount, PaidAt: noon})
	is, err := w.here.BookingDetails(t.Context(), d.ID)
	if p := is.Payment(); err != nil || p.Status != rental.PaymentPaid || p.Charged != is.Price.Rental() || !p.Final {
		t.Errorf("%+v, %v: %+v; want it paid", p, err, is.Charges)
	}
	if jobs, err := w.here.TakeCharges(t.Context(), 10, time.Minute); len(jobs) > 0 || err != nil {
		t.Errorf("then due: %+v, %v", jobs, err)
	}
}

// What is mended in time is not taken back by the clock of the first attempt.
func TestExtension_AnotherCardStartsTheWaitAgain(t *testing.T) {
	w := newRentalWorld(t)
	_, charge := w.declinedExtension()
	_, _, err := w.here.SetDefault(t.Context(), w.clientOf("anna"), w.master, asks(anna, rental.MethodDefault, 0, noon).Activity, nil)
	require.NoError(t, err)
	job := w.takeOne()
	if !job.MendBy.After(time.Now()) || job.Mended.IsZero() || job.Card == nil || job.Card.ID != w.master {
		t.Errorf("the job after another default %+v, want it tried with that card", job)
	}
	// Refused again: the client has to mend it again.
	if ok, err := w.here.WriteCharge(t.Context(), job,
		rental.Result{State: rental.Unknown, DeclineCode: "insufficient_funds", CountAttempt: true, Card: job.Card}); !ok || err != nil {
		t.Fatalf("written %v, %v", ok, err)
	}
	w.settle(job, rental.Result{State: rental.Declined, DeclineCode: "insufficient_funds"})
	if n := w.count(`select count(*) from charges where id = $1 and mended_at is not null`, charge.ID); n != 0 {
		t.Error("a payment that was refused again still counts as mended")
	}
	// A notice of the processor changes nothing about that time, nor does a query.
	for range 2 {
		w.exec(`update charges set look_at = now() where id = $1`, charge.ID)
		again := w.takeOne()
		if !again.MendBy.Equal(job.MendBy) || !again.QueryOnly {
			t.Errorf("mended by %v, want %v", again.MendBy, job.MendBy)
		}
		w.settle(again, rental.Result{State: rental.Declined, DeclineCode: "insufficient_funds", NextAttempt: again.NextAttempt})
	}
	if n := w.count(`select count(*) from charges where id = $1 and look_at = mend_by and next_attempt_at is null`, charge.ID); n != 1 {
		t.Error("no query is due when the time of the extension is over")
	}
}

// Two extensions are refused: once the later one is taken back, the time of the earlier one counts.
func TestExtension_EarlierOneIsTakenBackAfterTheLaterOne(t *testing.T) {
	w := newRentalWorld(t)
	d, first := w.declinedExtension()
	// As long as its result is open.
	w.exec(`update charges set state = 'unknown', decline_code = '' where id = $1`, first.ID)
	d = w.amend(
		rental.BookingExtend, d.ID, noon,
		func(d rental.BookingDetails) (rental.Change, error) {
			return d.Extend(noon, d.End.Add(time.Hour), telematics.Client)
		},
	)
	w.exec(
		`update charges set state = 'failed', decline_code = 'stolen_card', next_attempt_at = null, look_at = null,
			mend_by = now() - interval '1 second' where id = $1`,
		first.ID,
	)
	later := w.takeOne()
	w.settle(later, rental.Result{State: rental.Failed, DeclineCode: "stolen_card"})
	w.exec(`update charges set mend_by = now(), look_at = now() where id = $1`, later.ID)
	w.settle(w.takeOne(), rental.Result{State: rental.Released, DeclineCode: "stolen_card"})
	job := w.takeOne()
	if job.ID != first.ID || job.MendBy.IsZero() || !job.QueryOnly {
		t.Errorf("due: %+v; want the first extension, to be taken back", job)
	}
	w.settle(job, rental.Result{State: rental.Released, DeclineCode: "stolen_card"})
	is, err := w.here.BookingDetails(t.Context(), d.ID)
	if err != nil || is.Price.Hours != 100 {
		t.Errorf("booking %+v, %v; want an hour, as before both", is.Booking, err)
	}
}

// A card that the client adds while an extension without one is being taken back is tried.
func TestExtension_CardThatComesAtTheLastMomentIsTried(t *testing.T) {
	w := newRentalWorld(t)
	d, charge := w.declinedExtension()
	w.exec(
		`update charges set decline_code = 'no_card', payment_method_id = $2, look_at = now(), next_attempt_at = null where id = $1`,
		charge.ID, w.visa,
	)
	job := w.takeOne()
	_, _, err := w.here.SetDefault(t.Context(), w.clientOf("anna"), w.master, asks(anna, rental.MethodDefault, 0, noon).Activity,
		nil)
	require.NoError(t, err)
	if ok, err := w.here.SettleCharge(t.Context(), job, rental.Result{State: rental.Released, DeclineCode: "no_card"}); ok || err != nil {
		t.Errorf("taken back %v, %v; want it tried with the new card", ok, err)
	}
	if is, err := w.here.BookingDetails(t.Context(), d.ID); err != nil || !is.End.Equal(d.End) {
		t.Errorf("booking %+v, %v; want it extended", is.Booking, err)
	}
	if next := w.takeOne(); next.QueryOnly || next.Card == nil || next.Card.ID != w.master {
		t.Errorf("the next job %+v, want one with the new card", next)
	}
}

func TestMended_AlsoWhileTheOldCardIsTriedAgain(t *testing.T) {
	w := newRentalWorld(t)
	_, charge := w.declinedExtension()
	w.exec(`update charges set state = 'unknown', payment_method_id = $2 where id = $1`, charge.ID, w.visa)
	_, _, err := w.here.SetDefault(t.Context(), w.clientOf("anna"), w.master, asks(anna, rental.MethodDefault, 0, noon).Activity,
		nil)
	require.NoError(t, err)
	if n := w.count(`select count(*) from charges where id = $1 and mended_at is not null`, charge.ID); n != 1 {
		t.Error("another card, while the processor gives no answer about the old one, counts for nothing")
	}
}

func (w *rentalWorld) clientOf(subject string) rental.ClientID {
	return rental.ClientID(w.count(`select id from clients where subject = $1`, subject))
}

// What the client cannot mend, and can drive with: the operator learns of it.
func TestForOperator_CountsChargesThatNoClientCanMend(t *testing.T) {
	w := newRentalWorld(t)
	d := w.book(draft(1, 1, 2))
	w.amend(rental.BookingStart, d.ID, noon, beginAt(noon))
	want := func(what string, n int) {
		t.Helper()
		if is, err := w.here.ForOperator(t.Context()); err != nil || is != n {
			t.Errorf("%s: %d charges, %v; want %d", what, is, err, n)
		}
	}
	w.exec(`update charges set state = 'failed', decline_code = 'stolen_card', created_at = now() - interval '1 hour'`)
	want("a stolen card", 0)
	w.exec(`update charges set decline_code = $1 where kind = 'start'`, rental.CodeRefused)
	want("a rejected payment", 1)
	w.exec(`update charges set decline_code = $1 where kind = 'deposit'`, rental.CodeCanceled)
	want("a cancelled deposit, too", 2)
	w.amend(rental.BookingFee, d.ID, time.Now(), func(d rental.BookingDetails) (rental.Change, error) {
		return d.Fine(time.Now(), rental.Fee{Kind: "other", Amount: 100, Reason: "the rental"})
	})
	w.exec(`update charges set state = 'declined' where kind = 'fee'`)
	want("charged as a fee that is declined", 2)
	w.exec(`update charges set state = 'paid', paid_at = now() where kind = 'fee'`)
	want("charged as a fee", 0)
	w.exec(`delete from charges where kind = 'fee'`)
	w.exec(`update charges set state = 'captured', goal = 'capture', capture_amount = 100, reason = 'the rental', decline_code = '',
		paid_at = now() where kind = 'deposit'`)
	want("captured from the deposit", 0)
	w.exec(`update charges set paid_at = created_at - interval '1 minute' where kind = 'deposit'`)
	want("captured for something else before", 1)
}

// A capture for something else, before, does not hide that the price is refused then.
func TestForOperator_CountsWhatIsRefusedAfterACapture(t *testing.T) {
	w := newRentalWorld(t)
	w.amend(rental.BookingCapture, w.onlyHeld().ID, noon, func(d rental.BookingDetails) (rental.Change, error) {
		return d.CaptureDeposit(noon, 100, "scratch")
	})
	w.settle(w.takeOne(), rental.Result{State: rental.Captured, Settled: 100, PaidAt: time.Now()})
	w.settle(w.takeOne(), rental.Result{State: rental.Failed, DeclineCode: rental.CodeRefused})
	if n, err := w.here.ForOperator(t.Context()); err != nil || n != 1 {
		t.Errorf("%d charges for the operator, %v; want the price", n, err)
	}
}
