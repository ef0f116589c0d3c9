package money

import (
	"slices"

	"motorpool/rental"
	"motorpool/telematics"
)

// activities are the names of operations in the audit log.
var activities = map[OperationKind]string{
	Start: rental.BookingStart, Extend: rental.BookingExtend, Fee: rental.BookingFee,
	Refund: rental.BookingRefund, Capture: rental.BookingCapture, End: rental.BookingEnd,
}

// operation checks the answer to an operation.
func (a *audit) operation(d Operation) {
	law := lawRefused
	if d.Done() {
		law = lawConfirmed
		a.Must(lawConfirmed, d.Repeated == 0 || d.Repeated == d.Status, "%v: the repetition was answered %d", d, d.Repeated)
		a.Must(lawConfirmed, !d.Wrong, "%v had to be refused", d)
	} else {
		a.Must(lawRefused, slices.Contains(refusals[d.Kind], d.Code) && (d.Wrong || d.MayFail), "%v had to succeed", d)
	}
	switch d.Kind {
	case Fee, Refund:
		n, sum := a.named(d)
		if d.Done() {
			a.Must(law, sum == d.Amount && (d.Kind == Refund || n == 1), "%v: %d charges, total %d", d, n, sum)
		} else {
			a.Must(law, n == 0, "%v: %d charges", d, n)
		}
	case Capture:
		deposit := a.singleCharge(d.Booking, rental.DepositCharge)
		named := deposit.Reason == d.Reason && deposit.Goal == rental.Capture && deposit.CaptureAmount == d.Amount
		a.Must(law, named == d.Done(), "%v: %v has capture amount %d for %q", d, deposit, deposit.CaptureAmount, deposit.Reason)
	}
	if d.Kind == Fee || d.Kind == Refund || d.Kind == Capture {
		entriesOf := a.entriesOf(d.Booking, func(l Entry) bool { return l.Action == activities[d.Kind] && l.Note == d.Reason })
		a.Must(lawAuditLog, entriesOf == oneIf(d.Done()), "%v: %d entries", d, entriesOf)
	}
}

// named returns the number and the total of the charges of an operation.
func (a *audit) named(d Operation) (n int, sum rental.Minor) {
	for _, c := range a.charges[d.Booking] {
		if c.Reason == d.Reason && (c.Kind == rental.FeeCharge || c.Kind == rental.RefundCharge) {
			n, sum = n+1, sum+c.Amount
		}
	}
	return n, sum
}

// singleCharge returns the booking's charge of a kind; zero: there is none.
func (a *audit) singleCharge(id rental.BookingID, kind rental.ChargeKind) ChargeRow {
	for _, c := range a.charges[id] {
		if c.Kind == kind {
			return c
		}
	}
	return ChargeRow{}
}

// requested checks that every charge belongs to a confirmed operation.
func (a *audit) requested() {
	kinds := map[rental.ChargeKind]OperationKind{rental.FeeCharge: Fee, rental.RefundCharge: Refund}
	for _, c := range a.Charges {
		if kind, named := kinds[c.Kind]; named {
			d, ok := a.reasons[c.Reason]
			a.Must(lawRequested, ok && d.Kind == kind && d.Booking == c.Booking, "%v for %q", c, c.Reason)
		}
	}
}

// booking compares the state of a booking with the answers to its callers, and its price with what
// was paid.
func (a *audit) booking(b BookingRow) {
	done := a.operations[b.ID]
	starts, extensions, ends := len(done[Start]), len(done[Extend]), len(done[End])
	want := rental.Upcoming
	switch {
	case ends > 0:
		want = rental.Completed
	case starts > 0:
		want = rental.Active
	}
	a.Must(lawConfirmed, b.State == want && starts <= 1 && ends <= 1, "booking %d is %s; by the answers it is %s", b.ID, b.State, want)
	a.Must(lawConfirmed, b.Extensions == extensions, "booking %d was extended %d times; by the answers, %d", b.ID, b.Extensions, extensions)
	if extensions > 0 {
		until := done[Extend][extensions-1].Until
		a.Must(lawConfirmed, b.End.Equal(until), "booking %d ends at %v; by the answers, at %v", b.ID, b.End, until)
	}
	count, paid := map[rental.ChargeKind]int{}, rental.Minor(0)
	for _, c := range a.charges[b.ID] {
		count[c.Kind]++
		// By no operation, the deposit is captured for what the card did not pay of the rental.
		byItself := c.Kind == rental.DepositCharge && c.Reason == "" || c.Kind == rental.EndCharge
		if c.Kind == rental.StartCharge || c.Kind == rental.ExtensionCharge || byItself {
			for _, m := range a.moneyMoved(c) {
				paid += rental.Minor(m.Captured)
			}
		}
	}
	a.Must(lawRequested, count[rental.StartCharge] == starts && count[rental.ExtensionCharge] == extensions &&
		count[rental.DepositCharge] == oneIf(starts > 0 && b.Deposit > 0), "booking %d has charges %v", b.ID, count)
	if starts > 0 {
		a.Must(lawSums, paid == b.Rental, "booking %d costs %d; %d was paid", b.ID, b.Rental, paid)
	}
	for kind, n := range map[OperationKind]int{Start: starts, Extend: extensions, End: ends} {
		entriesOf := a.entriesOf(b.ID, func(l Entry) bool { return l.Action == activities[kind] })
		a.Must(lawAuditLog, entriesOf == n, "booking %d: %d entries of %s; by the answers, %d", b.ID, entriesOf, kind, n)
	}
}

// entriesOf counts the audit log entries of something that was done; those of repetitions do not
// count.
func (a *audit) entriesOf(id rental.BookingID, of func(Entry) bool) (n int) {
	for _, l := range a.entries[id] {
		if l.Outcome == telematics.Executed && l.Code == "" && of(l) {
			n++
		}
	}
	return n
}

// chargeEntries checks that each state that a charge reached has one entry in the audit log.
func (a *audit) chargeEntries(c ChargeRow) {
	ofState := func(s rental.ChargeState) int {
		return a.entriesOf(c.Booking, func(l Entry) bool {
			return l.Action == rental.ChargeActivity(c.Kind) && l.Number == c.Number && l.State == s
		})
	}
	for _, s := range []rental.ChargeState{rental.Paid, rental.Captured, rental.Released} {
		n := ofState(s)
		cameBack := c.Kind == rental.RefundCharge && c.State == rental.Failed && s == rental.Paid && n <= 1
		a.Must(lawAuditLog, n == oneIf(c.State == s) || cameBack, "%v: %d entries say that it is %s", c, n, s)
	}
	if c.Kind == rental.DepositCharge {
		n := ofState(rental.Authorized)
		a.Must(lawAuditLog, n <= 1 && (c.State != rental.Authorized || n == 1), "%v: %d entries say that it is held", c, n)
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}
