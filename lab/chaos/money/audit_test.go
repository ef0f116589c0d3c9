package money

import (
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/lab/chaos/runner"
	"motorpool/rental"
	"motorpool/simulator/sandbox"
	"motorpool/telematics"
)

var until = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// goodRound is a booking that was started, extended, fined, refunded, captured from and ended
// without a violation.
func goodRound() Evidence {
	operation := func(kind OperationKind, amount rental.Minor) Operation {
		return Operation{
			Kind: kind, Booking: 1, Key: "1-" + string(kind), Reason: "1-" + string(kind), Amount: amount, Status: 200,
			Tries: 1,
		}
	}
	charge := func(id string, kind rental.ChargeKind, state rental.ChargeState, amount rental.Minor) ChargeRow {
		return ChargeRow{
			ID: id, Booking: 1, Kind: kind, Number: 1, State: state, Currency: "EUR", Amount: amount, Settled: amount,
			Intent: "pi_" + id,
		}
	}
	payment := func(id string, amount int64) sandbox.Movement {
		return sandbox.Movement{
			Intent: "pi_" + id, Charge: id, Currency: "EUR", Status: "succeeded", Amount: amount, Captured: amount,
			Attempts: 1, Approved: 1,
		}
	}
	e := Evidence{
		Operations: []Operation{
			operation(Start, 0), operation(Extend, 0), operation(Fee, 50), operation(Refund, 20),
			operation(Capture, 70), operation(End, 0),
		},
		Record: Record{
			Bookings: []BookingRow{{ID: 1, State: rental.Completed, Rental: 130, Deposit: 200, Extensions: 1, End: until}},
			Charges: []ChargeRow{
				charge("start", rental.StartCharge, rental.Paid, 100), charge("deposit", rental.DepositCharge, rental.Captured, 200),
				charge("more", rental.ExtensionCharge, rental.Paid, 30), charge("fee", rental.FeeCharge, rental.Paid, 50),
				charge("back", rental.RefundCharge, rental.Paid, 20),
			},
		},
		Ledger: []sandbox.Movement{payment("start", 100), payment("deposit", 70), payment("more", 30), payment("fee", 50),
			{Intent: "pi_never", Charge: "fee", Currency: "EUR", Status: "requires_payment_method", Amount: 50}},
	}
	e.Operations[1].Until = until
	deposit, fee, back := &e.Charges[1], &e.Charges[3], &e.Charges[4]
	deposit.Settled, deposit.CaptureAmount, deposit.Goal, deposit.Reason = 70, 70, rental.Capture, "1-capture"
	fee.Reason, back.Reason, back.Refunds = "1-fee", "1-refund", "start"
	e.Ledger[0].Refunded, e.Ledger[0].Refunds = 20, []sandbox.Giveback{{Refund: "pi_back", Charge: "back", Amount: 20, Status: "succeeded"}}
	for _, d := range e.Operations {
		e.Entries = append(e.Entries, Entry{Booking: 1, Action: activities[d.Kind], Outcome: telematics.Executed, Note: d.Reason})
	}
	for _, c := range e.Charges {
		e.Entries = append(
			e.Entries,
			Entry{Booking: 1, Action: rental.ChargeActivity(c.Kind), Outcome: telematics.Executed, Number: 1, State: c.State},
		)
	}
	return e
}

func TestCheck_GoodRoundHasNoViolation(t *testing.T) {
	report := Check(goodRound())
	if len(report.Violations) > 0 {
		t.Errorf("violations %q, want none", report.Violations)
	}
	if unchecked := report.Unchecked(); !slices.Equal(unchecked, []string{lawRefused}) {
		t.Errorf("unchecked laws %q, want only %q", unchecked, lawRefused)
	}
}

func TestCheck_FindsViolations(t *testing.T) {
	for name, test := range map[string]struct {
		law   string
		spoil func(*Evidence)
	}{
		"charged twice, by two payments": {lawCharged, func(e *Evidence) {
			twin := e.Ledger[3]
			twin.Intent = "pi_twin"
			e.Ledger = append(e.Ledger, twin)
		}},
		"charged twice, by two attempts":           {lawCharged, func(e *Evidence) { e.Ledger[3].Approved = 2 }},
		"charged another amount":                   {lawCharged, func(e *Evidence) { e.Ledger[3].Captured++ }},
		"charged in another currency":              {lawCharged, func(e *Evidence) { e.Ledger[3].Currency = "JPY" }},
		"settled another amount":                   {lawCharged, func(e *Evidence) { e.Charges[3].Settled-- }},
		"paid in the record, not at the processor": {lawCharged, func(e *Evidence) { e.Ledger[3].Captured, e.Ledger[3].Approved = 0, 0 }},
		"paid at the processor, not in the record": {lawCharged, func(e *Evidence) { e.Charges[3].State = rental.Declined }},
		"still open":               {lawSettled, func(e *Evidence) { e.Charges[3].State = rental.Unknown }},
		"still due":                {lawSettled, func(e *Evidence) { e.Charges[3].Due = true }},
		"captured too much":        {lawDeposits, func(e *Evidence) { e.Ledger[1].Captured = 71 }},
		"captured, and still held": {lawDeposits, func(e *Evidence) { e.Ledger[1].Held = 130 }},
		"released in the record, captured at the processor": {lawDeposits, func(e *Evidence) {
			e.Charges[1].State, e.Charges[1].Settled = rental.Released, 0
		}},
		"refunded twice": {lawRefunds, func(e *Evidence) {
			again := sandbox.Giveback{Refund: "re_2", Charge: "back", Amount: 20, Status: "succeeded"}
			e.Ledger[0].Refunds = append(e.Ledger[0].Refunds, again)
		}},
		"refunded another amount":        {lawRefunds, func(e *Evidence) { e.Ledger[0].Refunds[0].Amount = 21 }},
		"refund of another payment":      {lawRefunds, func(e *Evidence) { e.Charges[4].Refunds = "more" }},
		"refund failed at the processor": {lawRefunds, func(e *Evidence) { e.Ledger[0].Refunds[0].Status = "failed" }},
		"payment without a charge":       {lawRecorded, func(e *Evidence) { e.Ledger[4].Charge = "?" }},
		"refund without a charge":        {lawRecorded, func(e *Evidence) { e.Ledger[0].Refunds[0].Charge = "?" }},
		"confirmed, but not on record": {lawConfirmed, func(e *Evidence) {
			e.Operations = append(e.Operations, Operation{Kind: Fee, Booking: 1, Reason: "lost", Status: 200})
		}},
		"confirmed with another amount":         {lawConfirmed, func(e *Evidence) { e.Operations[2].Amount = 51 }},
		"confirmed, but the repetition differs": {lawConfirmed, func(e *Evidence) { e.Operations[2].Repeated = 409 }},
		"wrongly confirmed":                     {lawConfirmed, func(e *Evidence) { e.Operations[2].Wrong = true }},
		"ended, but still active":               {lawConfirmed, func(e *Evidence) { e.Bookings[0].State = rental.Active }},
		"extended twice":                        {lawConfirmed, func(e *Evidence) { e.Bookings[0].Extensions = 2 }},
		"extended to another end":               {lawConfirmed, func(e *Evidence) { e.Bookings[0].End = until.Add(time.Minute) }},
		"captured another amount":               {lawConfirmed, func(e *Evidence) { e.Operations[4].Amount = 71 }},
		"refused, but on record": {lawRefused, func(e *Evidence) {
			e.Operations[3].Status, e.Operations[3].Code = 422, rental.RefundExceedsPaid
		}},
		"refused without a reason": {lawRefused, func(e *Evidence) {
			refused := Operation{Kind: Fee, Booking: 1, Reason: "other", Status: 409, Code: rental.BookingStateConflict}
			e.Operations = append(e.Operations, refused)
		}},
		"without a final response": {lawRefused, func(e *Evidence) {
			e.Operations = append(e.Operations, Operation{Kind: Fee, Booking: 1, Reason: "other"})
		}},
		"a fee without an operation":  {lawRequested, func(e *Evidence) { e.Charges[3].Reason = "?" }},
		"two extensions":              {lawRequested, func(e *Evidence) { e.Charges = append(e.Charges, e.Charges[2]) }},
		"paid less than due":          {lawSums, func(e *Evidence) { e.Bookings[0].Rental = 131 }},
		"two entries of an operation": {lawAuditLog, func(e *Evidence) { e.Entries = append(e.Entries, e.Entries[2]) }},
		"no entry of a start":         {lawAuditLog, func(e *Evidence) { e.Entries = e.Entries[1:] }},
		"no entry of a charge":        {lawAuditLog, func(e *Evidence) { e.Entries = e.Entries[:len(e.Entries)-1] }},
		"an entry of a payment that does not exist": {lawAuditLog, func(e *Evidence) {
			e.Charges[0].State = rental.Declined
		}},
	} {
		t.Run(name, func(t *testing.T) {
			e := goodRound()
			test.spoil(&e)
			violations := Check(e).Violations
			for _, v := range violations {
				if v.Law == test.law {
					return
				}
			}
			t.Errorf("the violation was not found, only %q", violations)
		})
	}
}

func TestCheck_ReturnedRefundIsNoViolation(t *testing.T) {
	e := goodRound()
	e.Charges[4].State, e.Charges[4].Settled = rental.Failed, 0
	e.Ledger[0].Refunded, e.Ledger[0].Refunds[0].Status = 0, "failed"
	if violations := Check(e).Violations; len(violations) > 0 {
		t.Errorf("violations %q, want none", violations)
	}
}

func TestDrawOperations_SameSeedSameOperations(t *testing.T) {
	b := booking{id: 7, end: until}
	kinds := map[OperationKind]bool{}
	for id := range rental.BookingID(60) {
		b.id = id
		once, again, other := b.drawOperations(1), b.drawOperations(1), b.drawOperations(2)
		same := len(once) == len(other)
		for i, d := range once {
			if *d != *again[i] {
				t.Fatalf("one seed gave %v and %v", *d, *again[i])
			}
			same = same && *d == *other[i]
			kinds[d.Kind] = true
		}
		if same {
			t.Errorf("booking %d: two seeds gave the same operations", id)
		}
	}
	for kind := range activities {
		if !kinds[kind] {
			t.Errorf("no booking has the operation %s", kind)
		}
	}
}

func TestResult_EmptyRoundIsNotValid(t *testing.T) {
	r, err := newRound(nil, runner.Config{}, Plan{}, "bookings", 20, bookingsASecond)
	if err != nil || r.worthless() == "" {
		t.Error("an empty round counts as valid")
	}
}

func TestAnswer_OnlyFinalAnswersAreDefinite(t *testing.T) {
	for _, test := range []struct {
		answer
		definite bool
	}{
		{answer{}, false}, {answer{status: 200}, true}, {answer{status: 500}, false},
		{answer{status: 503, code: "service_unavailable"}, false},
		{answer{status: 429, code: "rate_limited"}, false}, {answer{status: 409, code: telematics.IdempotencyInProgress}, false},
		{answer{status: 409, code: rental.BookingStateConflict}, true}, {answer{status: 422}, true},
	} {
		assert.Equal(t, test.answer.definite(), test.definite, "%+v: definite", test.answer)
	}
}

func TestCheck_NameOfALostBookingNamesNoOther(t *testing.T) {
	e := goodRound()
	e.Shown = []Name{
		{"BK-2026-00007", "client-1, vehicle 3", until},
		{"4711", "client-1, vehicle 3", until},
		{"BK-2026-00007", "client-1, vehicle 3", until},
	}
	e.Named = []Name{{"BK-2026-00008", "client-2, vehicle 3", until}, {"4711", "client-1, vehicle 3", until}}
	report := Check(e)
	if len(report.Violations) > 0 || report.Checked[lawNames] == 0 {
		t.Errorf("checked %d times, violations %q, want none", report.Checked[lawNames], report.Violations)
	}
	e.Named[0].Name = "BK-2026-00007"
	if report := Check(e); len(report.Of(lawNames)) != 1 {
		t.Errorf("violations %q, want one of %q", report.Violations, lawNames)
	}
}
