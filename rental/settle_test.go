package rental_test

import (
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/rental"
	"motorpool/telematics"
)

// heldOnly is a rental whose start only held the deposit.
func heldOnly(t *testing.T, deposit rental.Minor) rental.BookingDetails {
	t.Helper()
	d := planned()
	d.Price.Deposit = deposit
	d.Terms.Rules = rental.DefaultRules
	d.Terms.Rules.ChargeAtStart = rental.ChargeNothing
	d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
	settleAll(&d, start)
	return after(d, must(d.Activate(start, start, 0)))
}

// A hold that the processor waives secures nothing.
func TestStartPayment_ADepositThatIsTooSmallIsNone(t *testing.T) {
	d := planned()
	d.Terms.Rules.ChargeAtStart = rental.ChargeNothing
	d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
	d.Charges[0].State, d.Charges[0].DeclineCode = rental.Waived, rental.CodeTooSmall
	if p, why := d.StartPayment(), d.StartRefused().Message; p != rental.PaymentRefused || !strings.Contains(why, "Contact the agency") {
		t.Errorf("the payment of the start is %v: %s", p, why)
	}
	if d.Price.Subtotal, d.Price.TaxDue = 0, 0; d.StartPayment() != rental.PaymentMade {
		t.Error("a rental that costs nothing cannot start")
	}
	d = planned()
	d = after(d, must(d.Open(start, rental.StartRental, telematics.Client)))
	d.Charges[0].State, d.Charges[1].State = rental.Paid, rental.Waived
	assert.Equal(t, d.StartPayment(), rental.PaymentMade, "with the price paid it")
}

// A processor ends a hold after a week: what is rented for longer is charged, as a whole.
func TestExtend_ForLongerThanAHoldLastsIsCharged(t *testing.T) {
	d := heldOnly(t, 10_000)
	d = after(d, do(t)(d.Extend(start, start.Add(5*24*time.Hour), telematics.Client)))
	assert.Equal(t, len(d.Charges), 1, "charges of five days")
	before := d.Booking
	d = after(d, do(t)(d.Extend(start, start.Add(7*24*time.Hour), telematics.Client)))
	if c := d.Charges[len(d.Charges)-1]; c.Kind != rental.ExtensionCharge || c.Amount != d.Price.Rental() {
		t.Fatalf("seven days: %+v; want %d charged", c, d.Price.Rental())
	}
	back, err := d.TakeBack(d.Charges[1].ID)
	if err != nil || back.Booking != before {
		t.Errorf("not paid: %+v, %v; want the booking as before", back.Booking, err)
	}
	carryOut(&d.Charges[1], start)
	d = after(d, do(t)(d.Extend(start, start.Add(8*24*time.Hour), telematics.Client)))
	if c := d.Charges[2]; c.Amount != d.Price.Rental()-d.Charges[1].Amount {
		t.Errorf("another day: %+v", c)
	}
	long := planned()
	long.End = start.Add(7 * 24 * time.Hour)
	long.Terms.Rules.ChargeAtStart = rental.ChargeNothing
	hourly := upcoming()
	hourly.Terms.Rules.ChargeAtStart = rental.ChargeNothing
	for what, d := range map[string]rental.BookingDetails{"of seven days": long, "by the hour": hourly} {
		if c := do(t)(d.Open(start, rental.StartRental, telematics.Client)); len(c.Charges) != 2 {
			t.Errorf("the start %s charges %+v; want the price, and the deposit held", what, c.Charges)
		}
	}
}

// endedByHold is a rental whose start only held the deposit, and that has ended: its price, 86.90,
// is being charged.
func endedByHold(t *testing.T, deposit rental.Minor) rental.BookingDetails {
	t.Helper()
	d := heldOnly(t, deposit)
	c, done, err := d.Close(start.Add(8*time.Hour), start.Add(8*time.Hour), 0)
	if err != nil || !done || len(c.Charges) != 1 {
		t.Fatalf("the end: %+v, %v, %v; want one charge", c, done, err)
	}
	if len(c.Amended) > 0 {
		t.Fatalf("the end changes %+v; want the deposit held until the payment has a result", c.Amended)
	}
	return after(d, c)
}

// settlesUp gives a charge a state, and returns the booking with what follows from it.
func settlesUp(d rental.BookingDetails, charge int, s rental.ChargeState, code string) rental.BookingDetails {
	d.Charges = append([]rental.Charge{}, d.Charges...)
	c, now := &d.Charges[charge], start.Add(9*time.Hour)
	c.State, c.DeclineCode = s, code
	switch s {
	case rental.Paid:
		c.Settled, c.PaidAt = c.Amount, now
	case rental.Captured:
		c.Settled, c.PaidAt = c.CaptureAmount, now
	case rental.Released:
		c.Settled = 0
	}
	return after(d, rental.SettleUp(d, now))
}

const hold, end, rest = 0, 1, 2 // charges of endedByHold

func TestSettleUp_ThePaidEndReleasesTheDeposit(t *testing.T) {
	d := endedByHold(t, 10_000)
	for _, s := range []rental.ChargeState{rental.Pending, rental.Unknown} {
		if d = settlesUp(d, end, s, ""); d.Charges[hold].Goal != rental.Hold {
			t.Errorf("%s: the deposit is %+v, want it held", s, d.Charges[hold])
		}
	}
	assert.Equal(t, d.Payment().Status, rental.PaymentPending, "the payment")
	d = settlesUp(d, end, rental.Paid, "")
	assert.Equal(t, d.Charges[hold].Goal, rental.Release, "the deposit")
	assert.Equal(t, d.Payment().Status, rental.PaymentPaid, "the payment while the deposit is being released")
	d = settlesUp(d, hold, rental.Released, "")
	assert.Equal(t, len(d.Charges), 2, "charges")
}

func TestSettleUp_TheDepositPaysWhatTheCardDoesNot(t *testing.T) {
	for state, code := range map[rental.ChargeState]string{
		rental.Declined: "insufficient_funds", rental.Failed: "stolen_card", rental.RequiresAction: "authentication_required",
	} {
		d := settlesUp(endedByHold(t, 10_000), end, state, code)
		if d.Charges[end].Goal != rental.Release || d.Charges[hold].Goal != rental.Hold {
			t.Fatalf("%s: %+v; want the payment withdrawn first, since it may be made meanwhile", state, d.Charges)
		}
		assert.Equal(t, d.Payment().Status, rental.PaymentPending, "the payment meanwhile")
		if paid := settlesUp(d, end, rental.Paid, ""); paid.Charges[hold].Goal != rental.Release {
			t.Errorf("%s: made meanwhile, and the deposit is %+v; want it released", state, paid.Charges[hold])
		}
		d = settlesUp(d, end, rental.Released, code)
		if c := d.Charges[hold]; c.Goal != rental.Capture || c.CaptureAmount != 8_690 || len(d.Charges) != 2 {
			t.Fatalf("%s: %+v; want 86.90 of the deposit", state, d.Charges)
		}
		lapsed := settlesUp(d, hold, rental.Released, rental.CodeExpired)
		if len(lapsed.Charges) != 3 || lapsed.Charges[rest].Amount != 8_690 || lapsed.Charges[rest].Kind != rental.EndCharge {
			t.Errorf("%s: without the hold %+v; want it charged again", state, lapsed.Charges)
		}
		if again := settlesUp(lapsed, rest, rental.Declined, code); again.Charges[rest].Goal != "" || len(again.Charges) != 3 {
			t.Errorf("%s: without the hold, declined again: %+v", state, again.Charges)
		}
		d = settlesUp(d, hold, rental.Captured, "")
		if p := d.Payment(); len(d.Charges) != 2 || p.Status != rental.PaymentPaid || !p.Final || p.Charged != 8_690 || p.PaidAt.IsZero() {
			t.Errorf("%s: %+v, %+v; want it paid", state, p, d.Charges)
		}
	}
}

func TestSettleUp_WhatTheDepositDoesNotCoverIsChargedAnew(t *testing.T) {
	d := settlesUp(settlesUp(endedByHold(t, 5_000), end, rental.Declined, "insufficient_funds"), end, rental.Released, "")
	if len(d.Charges) != 3 || d.Charges[hold].CaptureAmount != 5_000 || d.Charges[rest].Amount != 3_690 {
		t.Fatalf("%+v; want 50.00 of the deposit, and 36.90 charged", d.Charges)
	}
	d = settlesUp(settlesUp(d, hold, rental.Captured, ""), rest, rental.Declined, "insufficient_funds")
	if p := d.Payment(); len(d.Charges) != 3 || d.Charges[rest].Goal != "" || p.Status != rental.PaymentFailed || p.Charged != 5_000 {
		t.Errorf("%+v, %+v; want 36.90 owed", p, d.Charges)
	}
}

// What no card can mend is for the operator, who can capture as long as the hold lasts. A capture
// by staff is for something else.
func TestSettleUp_KeepsTheHoldForTheOperator(t *testing.T) {
	d := settlesUp(endedByHold(t, 10_000), end, rental.Failed, rental.CodeRefused)
	if c := d.Charges[hold]; c.Goal != rental.Hold || d.Limits().Capture != 10_000 {
		t.Errorf("the deposit %+v; want it held", c)
	}
	d = endedByHold(t, 10_000)
	d = after(d, must(d.CaptureDeposit(start, 2_000, "scratch")))
	d = settlesUp(settlesUp(d, end, rental.Declined, "insufficient_funds"), hold, rental.Captured, "")
	if d.Charges[hold].CaptureAmount != 2_000 || d.Charges[end].Goal != "" || len(d.Charges) != 2 {
		t.Errorf("%+v; want the scratch captured, and the rental owed", d.Charges)
	}
	d = settlesUp(endedByHold(t, 10_000), end, rental.Waived, rental.CodeTooSmall)
	if d.Charges[hold].Goal != rental.Release || len(d.Charges) != 2 {
		t.Errorf("%+v; want nothing owed", d.Charges)
	}
}

// The processor ends a hold while the rental runs, or staff take a part of it: nothing secures the
// price any more, so it is charged, once.
func TestSettleUp_WhatNoHoldSecuresIsCharged(t *testing.T) {
	now := start.Add(time.Hour)
	expired := heldOnly(t, 10_000)
	expired.Charges[hold].State, expired.Charges[hold].Settled, expired.Charges[hold].DeclineCode = rental.Released, 0, rental.CodeExpired
	part := heldOnly(t, 10_000)
	part = after(part, must(part.CaptureDeposit(start, 2_000, "scratch")))
	carryOut(&part.Charges[hold], start)
	for what, d := range map[string]rental.BookingDetails{"expired": expired, "captured": part} {
		for range 2 {
			d = after(d, rental.SettleUp(d, now))
		}
		if len(d.Charges) != 2 || d.Charges[end].Kind != rental.StartCharge || d.Charges[end].Amount != d.Price.Rental() {
			t.Fatalf("%s: %+v; want the price charged", what, d.Charges)
		}
		carryOut(&d.Charges[end], now)
		c, done, err := d.Close(now, now, 0)
		if d = after(d, c); err != nil || !done || len(d.Charges) > 3 {
			t.Fatalf("%s: the end %+v, %v", what, c, err)
		}
		asked := d.Charges[end].Amount - d.Charges[rest].Amount
		if d.Charges[rest].Kind != rental.RefundCharge || asked != d.Price.Rental() {
			t.Errorf("%s: %+v; want %d in all", what, d.Charges, d.Price.Rental())
		}
	}
	opening := heldOnly(t, 10_000)
	opening.State, opening.Charges = rental.Upcoming, expired.Charges
	if c := must(opening.Activate(now, start, 0)); len(c.Charges) != 1 || c.Charges[0].Amount != opening.Price.Rental() ||
		!c.Charges[0].Created.Equal(now) || !c.Booking.ActualStart.Equal(start) {
		t.Errorf("expired while the vehicle was opened: %+v; want the price charged now", c)
	}
	ending := heldOnly(t, 10_000)
	ending.Charges = expired.Charges
	ending.Transition = &rental.Transition{Kind: rental.EndRental, State: rental.TransitionOpen}
	if c := rental.SettleUp(ending, now); len(c.Charges) > 0 {
		t.Errorf("while the rental is being ended, which charges its final price: %+v", c)
	}
	if c := rental.SettleUp(heldOnly(t, 10_000), now); len(c.Charges) > 0 {
		t.Errorf("while it is held: %+v", c)
	}
	if c := rental.SettleUp(active(t), now); len(c.Charges) > 0 {
		t.Errorf("of a start that was charged: %+v", c)
	}
}

// An extension is refused, and the client ends the rental before it is taken back: its time was
// driven.
func TestSettleUp_ARefusedExtensionIsPaidByTheDeposit(t *testing.T) {
	d := active(t)
	d = after(d, do(t)(d.Extend(start, d.End.Add(time.Hour), telematics.Client)))
	d.Charges[2].State, d.Charges[2].DeclineCode = rental.Declined, "insufficient_funds"
	d = after(d, do(t)(d.Finish(start.Add(9*time.Hour))))
	if d.Charges[2].Goal != rental.Release || d.Charges[1].Goal != rental.Hold {
		t.Fatalf("%+v; want the extension withdrawn, and the deposit held", d.Charges)
	}
	if back, err := d.TakeBack(d.Charges[2].ID); err != nil || back.Booking != d.Booking {
		t.Errorf("%+v, %v; want the time that was driven to stay", back.Booking, err)
	}
	d = settlesUp(d, 2, rental.Released, "insufficient_funds")
	if c := d.Charges[1]; c.Goal != rental.Capture || c.CaptureAmount != d.Charges[2].Amount || len(d.Charges) != 3 {
		t.Errorf("%+v; want the deposit to pay %d", d.Charges, d.Charges[2].Amount)
	}
}

// What staff give back of a payment that came through although the end had withdrawn it is not
// charged again.
func TestSettleUp_ARefundOfAWithdrawnPaymentStays(t *testing.T) {
	d := after(upcoming(), must(upcoming().Begin(start))) // by staff: its owner must confirm
	carryOut(&d.Charges[1], start)
	d.Charges[0].State, d.Charges[0].DeclineCode = rental.RequiresAction, "authentication_required"
	now := start.Add(8 * time.Hour)
	d = after(d, do(t)(d.Finish(now)))
	if d.Charges[0].Goal != rental.Release {
		t.Fatalf("%+v; want the payment withdrawn", d.Charges)
	}
	d = settlesUp(d, 0, rental.Paid, "")
	d = settlesUp(d, 1, rental.Released, "")
	d = after(d, do(t)(d.Refund(now, 1_000, "the heating was broken")))
	d = settlesUp(d, 2, rental.Paid, "")
	d = after(d, do(t)(d.Fine(now, rental.Fee{Kind: "cleaning", Amount: 500, Reason: "sand"})))
	d = settlesUp(d, 3, rental.Paid, "")
	if net, _ := kept(d); len(d.Charges) != 4 || net != 13_200-1_000+500 {
		t.Errorf("the client has paid %d: %+v", net, d.Charges)
	}
}

// The vehicle may answer long after its end was requested, in another month: what the end charges
// and gives back is of the time at which that is written, so that no report misses it.
func TestClose_ChargesAreOfTheTimeTheyAreWritten(t *testing.T) {
	requested, now := start.Add(time.Hour), start.Add(20*time.Hour)
	held, paid := heldOnly(t, 10_000), active(t)
	paid.Plan = &rental.Plan{Version: 1, Hour: 1_000}
	for kind, d := range map[rental.ChargeKind]rental.BookingDetails{rental.EndCharge: held, rental.RefundCharge: paid} {
		c, done, err := d.Close(now, requested, 0)
		if err != nil || !done || len(c.Charges) != 1 || c.Charges[0].Kind != kind || !c.Charges[0].Created.Equal(now) {
			t.Errorf("%s: %+v, %v, %v; want one of %v", kind, c.Charges, done, err, now)
		}
		assert.Equal(t, c.Booking.ActualEnd, requested, "the end")
	}
}

// An integration of the operator's may have the subject of Motorpool's own entries.
func TestSettleUp_ACaptureByStaffWithAnySubjectPaysNoTime(t *testing.T) {
	d := heldOnly(t, 10_000)
	d = after(d, must(d.CaptureDeposit(start, 2_000, "scratch")))
	carryOut(&d.Charges[hold], start)
	d.Charges[hold].By = rental.System().Subject // as the store writes it
	c, done, err := d.Close(start.Add(8*time.Hour), start.Add(8*time.Hour), 0)
	if err != nil || !done || len(c.Charges) != 1 || c.Charges[0].Amount != 8_690 {
		t.Errorf("the end charges %+v, %v; want all of the time", c.Charges, err)
	}
}

// Instances date charges by their clocks: that of a start that failed may be dated after its
// repetition's, and is not the deposit for that.
func TestSettleUp_TheDepositIsThatOfTheLastStart(t *testing.T) {
	d := heldOnly(t, 10_000)
	first := d.Charges[hold]
	first.State, first.Goal, first.Settled = rental.Released, rental.Release, 0
	d.Charges[hold].Number = 2
	d.Charges = append(d.Charges, first)
	c, done, err := d.Close(start.Add(8*time.Hour), start.Add(8*time.Hour), 0)
	if err != nil || !done {
		t.Fatal(done, err)
	}
	d = settlesUp(after(d, c), 2, rental.Paid, "")
	assert.Equal(t, d.Charges[hold].Goal, rental.Release, "the deposit")
}
