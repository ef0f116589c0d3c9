package money

import (
	"slices"
	"time"

	"motorpool/lab/chaos/verdict"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
)

// The laws, in the order of the report.
const (
	lawSettled   = "everything settles"
	lawCharged   = "each charge is in the processor's ledger once, and equal"
	lawDeposits  = "each deposit is held, captured or released once"
	lawRefunds   = "each refund is in the ledger once, and equal"
	lawRecorded  = "nothing is in the ledger that is not on record"
	lawConfirmed = "a confirmed operation is on record once"
	lawRefused   = "a refused operation is not on record"
	lawRequested = "nothing is on record that was not requested"
	lawSums      = "what was paid for a booking is its price"
	lawAuditLog  = "each has one entry in the audit log"
	lawNames     = "a reference or id that was shown names no other booking"
)

// Check compares the accounts.
func Check(e Evidence) verdict.Report {
	a := newAudit(e)
	a.money()
	for _, d := range e.Operations {
		a.operation(d)
	}
	a.requested()
	for _, b := range e.Bookings {
		a.booking(b)
	}
	if len(e.Shown) > 0 {
		a.AddLaw(lawNames, 0)
		a.names()
	}
	return a.Report
}

// money compares the charges on record with the processor's ledger.
func (a *audit) money() {
	for _, c := range a.Charges {
		a.settled(c)
		switch c.Kind {
		case rental.RefundCharge:
			a.refunded(c)
		case rental.DepositCharge:
			a.held(c)
		default:
			a.charged(c)
		}
		a.chargeEntries(c)
	}
	a.recorded()
}

// names checks that each reference and id that a caller was shown, lost or not, is of one booking.
func (a *audit) names() {
	first := map[string]Name{}
	for _, n := range slices.Concat(a.Shown, a.Named) {
		before, known := first[n.Name]
		if !known {
			first[n.Name] = n
			continue
		}
		a.Must(
			lawNames, before.Of == n.Of, "%s was shown at %s for the booking of %s, and is that of %s", n.Name,
			before.At.Format(time.TimeOnly), before.Of, n.Of,
		)
	}
}

type audit struct {
	Evidence
	verdict.Report
	rows       map[string]ChargeRow                               // by id
	payments   map[string][]sandbox.Movement                      // by charge
	refunds    map[string][]giveback                              // likewise
	charges    map[rental.BookingID][]ChargeRow                   //
	operations map[rental.BookingID]map[OperationKind][]Operation // successful ones
	reasons    map[string]Operation                               // successful ones
	entries    map[rental.BookingID][]Entry
}

// giveback is a refund in the ledger, with its payment.
type giveback struct {
	sandbox.Giveback
	intent, currency string
}

func newAudit(e Evidence) *audit {
	a := &audit{
		Evidence: e,
		Report: verdict.New(
			lawSettled, lawCharged, lawDeposits, lawRefunds, lawRecorded, lawConfirmed, lawRefused, lawRequested,
			lawSums, lawAuditLog,
		),
		rows: map[string]ChargeRow{}, payments: map[string][]sandbox.Movement{}, refunds: map[string][]giveback{},
		charges: map[rental.BookingID][]ChargeRow{}, operations: map[rental.BookingID]map[OperationKind][]Operation{},
		reasons: map[string]Operation{}, entries: map[rental.BookingID][]Entry{},
	}
	for _, c := range e.Charges {
		a.rows[c.ID] = c
		a.charges[c.Booking] = append(a.charges[c.Booking], c)
	}
	for _, m := range e.Ledger {
		a.payments[m.Charge] = append(a.payments[m.Charge], m)
		for _, g := range m.Refunds {
			a.refunds[g.Charge] = append(a.refunds[g.Charge], giveback{g, m.Intent, m.Currency})
		}
	}
	for _, d := range e.Operations {
		if a.operations[d.Booking] == nil {
			a.operations[d.Booking] = map[OperationKind][]Operation{}
		}
		if d.Done() {
			a.operations[d.Booking][d.Kind] = append(a.operations[d.Booking][d.Kind], d)
			a.reasons[d.Reason] = d
		}
	}
	for _, l := range e.Entries {
		a.entries[l.Booking] = append(a.entries[l.Booking], l)
	}
	return a
}

func (a *audit) settled(c ChargeRow) {
	final := c.State.IsFinal() || c.State == rental.Authorized && c.Goal == rental.Hold ||
		c.Kind == rental.RefundCharge && c.State == rental.Failed
	a.Must(lawSettled, final && !c.Due, "%v", c)
}

// moneyMoved returns the payments of a charge that moved money, or hold it.
func (a *audit) moneyMoved(c ChargeRow) []sandbox.Movement {
	return slices.DeleteFunc(slices.Clone(a.payments[c.ID]), func(m sandbox.Movement) bool {
		return m.Approved == 0 && m.Captured == 0 && m.Held == 0
	})
}

// charged checks a payment.
func (a *audit) charged(c ChargeRow) {
	moved := a.moneyMoved(c)
	if c.State != rental.Paid {
		a.Must(lawCharged, len(moved) == 0, "%v: ledger %+v", c, moved)
		return
	}
	if len(moved) != 1 {
		a.Must(lawCharged, false, "%v: %d payments in the ledger: %+v", c, len(moved), moved)
		return
	}
	m := moved[0]
	a.Must(lawCharged, m.Approved == 1 && m.Held == 0 && m.Intent == c.Intent && m.Currency == c.Currency &&
		m.Captured == int64(c.Amount) && c.Settled == c.Amount, "%v: ledger %+v", c, m)
}

// held checks a deposit.
func (a *audit) held(c ChargeRow) {
	moved := a.moneyMoved(c)
	var captured, held, approved int64
	ours := true
	for _, m := range moved {
		captured, held, approved = captured+m.Captured, held+m.Held, approved+int64(m.Approved)
		ours = ours && m.Intent == c.Intent && m.Currency == c.Currency
	}
	var holds bool
	switch c.State {
	case rental.Authorized:
		holds = approved == 1 && held == int64(c.Amount) && c.Settled == c.Amount && captured == 0
	case rental.Captured:
		holds = approved == 1 && captured == int64(c.CaptureAmount) && c.Settled == c.CaptureAmount && held == 0
	case rental.Released:
		holds = approved <= 1 && captured == 0 && held == 0 && c.Settled == 0
	default:
		holds = len(moved) == 0
	}
	a.Must(lawDeposits, holds && ours, "%v, to capture %d: ledger %+v", c, c.CaptureAmount, moved)
}

// refunded checks a refund. One that was returned is failed in both accounts.
func (a *audit) refunded(c ChargeRow) {
	var good, failed []giveback
	for _, g := range a.refunds[c.ID] {
		if g.Status == "failed" {
			failed = append(failed, g)
		} else {
			good = append(good, g)
		}
	}
	if c.State != rental.Paid {
		a.Must(lawRefunds, len(good) == 0 && len(failed) <= 1, "%v: ledger %+v, failed %+v", c, good, failed)
		return
	}
	a.Must(
		lawRefunds,
		len(good) == 1 && len(failed) == 0 && good[0].Status == "succeeded" && good[0].Amount == int64(c.Amount) && c.Settled == c.Amount &&
			good[0].Refund == c.Intent && good[0].intent == a.rows[c.Refunds].Intent && good[0].currency == c.Currency,
		"%v: ledger %+v, failed %+v", c, good, failed,
	)
}

// recorded checks that everything in the ledger belongs to a stored charge. That includes payments
// that were prepared, and never made.
func (a *audit) recorded() {
	for _, m := range a.Ledger {
		c, ok := a.rows[m.Charge]
		a.Must(lawRecorded, ok && c.Kind != rental.RefundCharge, "payment %+v", m)
		for _, g := range m.Refunds {
			c, ok := a.rows[g.Charge]
			a.Must(lawRecorded, ok && c.Kind == rental.RefundCharge, "refund %+v", g)
		}
	}
}
