package money

import (
	"fmt"
	"slices"

	"motorpool/rental"
	"motorpool/simulator/sandbox"
)

// The laws, in the order of the report.
const (
	lawSettled  = "everything settles"
	lawCharged  = "each charge once in the processor's ledger, and equal"
	lawDeposits = "each deposit held, captured or released once"
	lawRefunds  = "each refund once, and equal"
	lawKnown    = "nothing moves there that is not on record"
	lawDone     = "what was confirmed to a caller is on record once"
	lawRefused  = "what was refused to a caller is not"
	lawAsked    = "nothing on record that nobody asked for"
	lawSums     = "sums of bookings, and of all, are equal"
	lawHistory  = "the history tells of each once"
)

var laws = []string{lawSettled, lawCharged, lawDeposits, lawRefunds, lawKnown, lawDone, lawRefused, lawAsked, lawSums, lawHistory}

// Report is what the audit found.
type Report struct {
	Checked    map[string]int // by law
	Violations []string
}

// Check holds the accounts against each other.
func Check(e Evidence) Report {
	a := newAudit(e)
	for _, c := range e.Charges {
		a.settled(c)
		switch c.Kind {
		case rental.RefundCharge:
			a.refunded(c)
		case rental.DepositCharge:
			a.held(c)
		default:
			a.charged(c)
		}
		a.toldOfCharge(c)
	}
	a.known()
	for _, d := range e.Deeds {
		a.deed(d)
	}
	a.asked()
	for _, b := range e.Bookings {
		a.booking(b)
	}
	a.sums()
	return a.Report
}

type audit struct {
	Evidence
	Report
	rows     map[string]ChargeRow                     // by id
	payments map[string][]sandbox.Movement            // by charge
	refunds  map[string][]giveback                    // likewise
	charges  map[rental.BookingID][]ChargeRow         //
	deeds    map[rental.BookingID]map[DeedKind][]Deed // that were done
	reasons  map[string]Deed                          // that were done
	lines    map[rental.BookingID][]Line
}

// giveback is a refund in the ledger, and the payment that it is of.
type giveback struct {
	sandbox.Giveback
	intent, currency string
}

func newAudit(e Evidence) *audit {
	a := &audit{
		Evidence: e, Report: Report{Checked: map[string]int{}}, rows: map[string]ChargeRow{}, payments: map[string][]sandbox.Movement{},
		refunds: map[string][]giveback{}, charges: map[rental.BookingID][]ChargeRow{},
		deeds: map[rental.BookingID]map[DeedKind][]Deed{}, reasons: map[string]Deed{}, lines: map[rental.BookingID][]Line{},
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
	for _, d := range e.Deeds {
		if a.deeds[d.Booking] == nil {
			a.deeds[d.Booking] = map[DeedKind][]Deed{}
		}
		if d.Done() {
			a.deeds[d.Booking][d.Kind] = append(a.deeds[d.Booking][d.Kind], d)
			a.reasons[d.Reason] = d
		}
	}
	for _, l := range e.Lines {
		a.lines[l.Booking] = append(a.lines[l.Booking], l)
	}
	return a
}

// law counts a check, and tells of it where it does not hold.
func (a *audit) law(law string, holds bool, format string, args ...any) {
	a.Checked[law]++
	if !holds {
		a.Violations = append(a.Violations, law+": "+fmt.Sprintf(format, args...))
	}
}

func (a *audit) settled(c ChargeRow) {
	final := c.State.IsFinal() || c.State == rental.Authorized && c.Goal == rental.Hold || c.Kind == rental.RefundCharge && c.State == rental.Failed
	a.law(lawSettled, final && !c.Due, "%v", c)
}

// moved returns the payments of a charge with which money moved, or is held.
func (a *audit) moved(c ChargeRow) []sandbox.Movement {
	return slices.DeleteFunc(slices.Clone(a.payments[c.ID]), func(m sandbox.Movement) bool {
		return m.Approved == 0 && m.Captured == 0 && m.Held == 0
	})
}

// charged checks a payment.
func (a *audit) charged(c ChargeRow) {
	moved := a.moved(c)
	if c.State != rental.Paid {
		a.law(lawCharged, len(moved) == 0, "%v: there %+v", c, moved)
		return
	}
	if len(moved) != 1 {
		a.law(lawCharged, false, "%v: %d payments there: %+v", c, len(moved), moved)
		return
	}
	m := moved[0]
	a.law(lawCharged, m.Approved == 1 && m.Held == 0 && m.Intent == c.Intent && m.Currency == c.Currency &&
		m.Captured == int64(c.Amount) && c.Settled == c.Amount, "%v: there %+v", c, m)
}

// held checks a deposit.
func (a *audit) held(c ChargeRow) {
	moved := a.moved(c)
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
		holds = approved == 0
	}
	a.law(lawDeposits, holds && ours, "%v, to capture %d: there %+v", c, c.CaptureAmount, moved)
}

// refunded checks a refund. One that came back is on record as failed, and so it is there.
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
		a.law(lawRefunds, len(good) == 0 && len(failed) <= 1, "%v: there %+v, failed %+v", c, good, failed)
		return
	}
	a.law(lawRefunds, len(good) == 1 && len(failed) == 0 && good[0].Status == "succeeded" && good[0].Amount == int64(c.Amount) && c.Settled == c.Amount &&
		good[0].Refund == c.Intent && good[0].intent == a.rows[c.Refunds].Intent && good[0].currency == c.Currency, "%v: there %+v, failed %+v", c, good, failed)
}

// known checks that the ledger knows of nothing that the record does not. What was prepared there, and never carried out, is of a
// charge on record too.
func (a *audit) known() {
	for _, m := range a.Ledger {
		c, ok := a.rows[m.Charge]
		a.law(lawKnown, ok && c.Kind != rental.RefundCharge, "payment %+v", m)
		for _, g := range m.Refunds {
			c, ok := a.rows[g.Charge]
			a.law(lawKnown, ok && c.Kind == rental.RefundCharge, "refund %+v", g)
		}
	}
}

// sums checks that money is the same in all, whatever it is of.
func (a *audit) sums() {
	ours, there := map[string]rental.Minor{}, map[string]rental.Minor{}
	for _, c := range a.Charges {
		switch {
		case c.Kind == rental.RefundCharge && c.State == rental.Paid:
			ours[c.Currency+" refunded"] += c.Settled
		case c.State == rental.Authorized:
			ours[c.Currency+" held"] += c.Settled
		case c.State == rental.Paid || c.State == rental.Captured:
			ours[c.Currency+" taken"] += c.Settled
		}
	}
	for _, m := range a.Ledger {
		there[m.Currency+" taken"] += rental.Minor(m.Captured)
		there[m.Currency+" held"] += rental.Minor(m.Held)
		there[m.Currency+" refunded"] += rental.Minor(m.Refunded)
	}
	for name, sum := range there {
		a.law(lawSums, ours[name] == sum, "%s: on record %d, there %d", name, ours[name], sum)
	}
	for name, sum := range ours {
		a.law(lawSums, there[name] == sum, "%s: on record %d, there %d", name, sum, there[name])
	}
}
