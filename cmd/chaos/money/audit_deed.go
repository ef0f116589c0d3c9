package money

import (
	"slices"

	"motorpool/rental"
	"motorpool/telematics"
)

// activities are what the history calls the deeds.
var activities = map[DeedKind]string{
	Start: rental.BookingStart, Extend: rental.BookingExtend, Fee: rental.BookingFee,
	Refund: rental.BookingRefund, Capture: rental.BookingCapture, End: rental.BookingEnd,
}

// deed checks what a caller was told of one thing that it asked for.
func (a *audit) deed(d Deed) {
	law := lawRefused
	if d.Done() {
		law = lawDone
		a.law(lawDone, d.Repeated == 0 || d.Repeated == d.Status, "%v: repeated, it was answered %d", d, d.Repeated)
		a.law(lawDone, !d.Wrong, "%v must be refused", d)
	} else {
		a.law(lawRefused, slices.Contains(refusals[d.Kind], d.Code) && (d.Wrong || d.Maybe), "%v: no reason to refuse it", d)
	}
	switch d.Kind {
	case Fee, Refund:
		n, sum := a.named(d)
		if d.Done() {
			a.law(law, sum == d.Amount && (d.Kind == Refund || n == 1), "%v: %d charges of %d in all", d, n, sum)
		} else {
			a.law(law, n == 0, "%v: %d charges", d, n)
		}
	case Capture:
		deposit := a.only(d.Booking, rental.DepositCharge)
		named := deposit.Reason == d.Reason && deposit.Goal == rental.Capture && deposit.CaptureAmount == d.Amount
		a.law(law, named == d.Done(), "%v: %v is to be captured by %d for %q", d, deposit, deposit.CaptureAmount, deposit.Reason)
	}
	if d.Kind == Fee || d.Kind == Refund || d.Kind == Capture {
		told := a.told(d.Booking, func(l Line) bool { return l.Action == activities[d.Kind] && l.Note == d.Reason })
		a.law(lawHistory, told == oneIf(d.Done()), "%v: %d lines", d, told)
	}
}

// named returns the charges that a deed made.
func (a *audit) named(d Deed) (n int, sum rental.Minor) {
	for _, c := range a.charges[d.Booking] {
		if c.Reason == d.Reason && (c.Kind == rental.FeeCharge || c.Kind == rental.RefundCharge) {
			n, sum = n+1, sum+c.Amount
		}
	}
	return n, sum
}

// only returns the booking's charge of a kind; a zero one: there is none.
func (a *audit) only(id rental.BookingID, kind rental.ChargeKind) ChargeRow {
	for _, c := range a.charges[id] {
		if c.Kind == kind {
			return c
		}
	}
	return ChargeRow{}
}

// asked checks that every charge is of a deed that was confirmed.
func (a *audit) asked() {
	kinds := map[rental.ChargeKind]DeedKind{rental.FeeCharge: Fee, rental.RefundCharge: Refund}
	for _, c := range a.Charges {
		if kind, named := kinds[c.Kind]; named {
			d, ok := a.reasons[c.Reason]
			a.law(lawAsked, ok && d.Kind == kind && d.Booking == c.Booking, "%v for %q", c, c.Reason)
		}
	}
}

// booking checks what became of a booking against what its callers were told, and its price against what was paid.
func (a *audit) booking(b BookingRow) {
	done := a.deeds[b.ID]
	starts, extensions, ends := len(done[Start]), len(done[Extend]), len(done[End])
	want := rental.Upcoming
	switch {
	case ends > 0:
		want = rental.Completed
	case starts > 0:
		want = rental.Active
	}
	a.law(lawDone, b.State == want && starts <= 1 && ends <= 1, "booking %d is %s; its callers were told %s", b.ID, b.State, want)
	a.law(lawDone, b.Extensions == extensions, "booking %d was extended %d times; its callers were told %d", b.ID, b.Extensions, extensions)
	if extensions > 0 {
		until := done[Extend][extensions-1].Until
		a.law(lawDone, b.End.Equal(until), "booking %d ends at %v; its caller was told %v", b.ID, b.End, until)
	}
	count, paid := map[rental.ChargeKind]int{}, rental.Minor(0)
	for _, c := range a.charges[b.ID] {
		count[c.Kind]++
		if c.Kind == rental.StartCharge || c.Kind == rental.ExtensionCharge {
			for _, m := range a.moved(c) {
				paid += rental.Minor(m.Captured)
			}
		}
	}
	a.law(lawAsked, count[rental.StartCharge] == starts && count[rental.ExtensionCharge] == extensions &&
		count[rental.DepositCharge] == oneIf(starts > 0 && b.Deposit > 0), "booking %d has charges %v", b.ID, count)
	if starts > 0 {
		a.law(lawSums, paid == b.Rental, "booking %d costs %d; %d was taken", b.ID, b.Rental, paid)
	}
	for kind, n := range map[DeedKind]int{Start: starts, Extend: extensions, End: ends} {
		told := a.told(b.ID, func(l Line) bool { return l.Action == activities[kind] })
		a.law(lawHistory, told == n, "booking %d: %d lines of %s; its callers were told %d", b.ID, told, kind, n)
	}
}

// told counts the lines of the history that tell of something that was done, and not of a repetition.
func (a *audit) told(id rental.BookingID, of func(Line) bool) (n int) {
	for _, l := range a.lines[id] {
		if l.Outcome == telematics.Executed && l.Code == "" && of(l) {
			n++
		}
	}
	return n
}

// toldOfCharge checks that the history tells of a charge that was settled once, and of nothing that was not.
func (a *audit) toldOfCharge(c ChargeRow) {
	ofState := func(s rental.ChargeState) int {
		return a.told(c.Booking, func(l Line) bool {
			return l.Action == rental.ChargeActivity(c.Kind) && l.Number == c.Number && l.State == s
		})
	}
	for _, s := range []rental.ChargeState{rental.Paid, rental.Captured, rental.Released} {
		n := ofState(s)
		cameBack := c.Kind == rental.RefundCharge && c.State == rental.Failed && s == rental.Paid && n <= 1
		a.law(lawHistory, n == oneIf(c.State == s) || cameBack, "%v: %d lines tell that it is %s", c, n, s)
	}
	if c.Kind == rental.DepositCharge {
		n := ofState(rental.Authorized)
		a.law(lawHistory, n <= 1 && (c.State != rental.Authorized || n == 1), "%v: %d lines tell that it is held", c, n)
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
