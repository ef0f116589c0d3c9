package money

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// OperationKind is what a caller requests.
type OperationKind string

const (
	Start   OperationKind = "start"
	Extend  OperationKind = "extend"
	Fee     OperationKind = "fee"
	Refund  OperationKind = "refund"
	Capture OperationKind = "capture"
	End     OperationKind = "end"
)

// Operation is a request of a caller about a booking, and its answer. It is repeated with one key
// until the answer is definite.
type Operation struct {
	Kind    OperationKind
	Booking rental.BookingID
	Key     string
	Reason  string       // of a fee, a refund or a capture: identifies them in Postgres
	Amount  rental.Minor // likewise
	Until   time.Time    // of an extension
	// Wrong operations must be refused in every case.
	Wrong bool
	// MayFail operations may be refused though they are not wrong: while a payment is owed, or in
	// progress.
	MayFail bool

	Tries int
	// The last attempt without a definite answer, which may still be processed; zero: none.
	Open   time.Time
	Status int             // of the definite answer; zero: none came
	Code   telematics.Code // likewise
	// Repeated is the status of a repetition after success; zero: there was none.
	Repeated int

	patient bool // what it requires may still be in progress: a refusal is retried
	twice   bool // sent to two instances concurrently
	repeats bool // sent once more after success
}

// Done reports whether the answer was a success.
func (d Operation) Done() bool { return d.Status/100 == 2 }

func (d Operation) String() string {
	return fmt.Sprintf(
		"%s of booking %d (%s, amount %d, answered %d %s after %d tries)", d.Kind, d.Booking, d.Key, d.Amount, d.Status,
		d.Code, d.Tries,
	)
}

// refusals are the codes with which each kind may be refused, because of the booking's state. Any
// other is a violation.
var refusals = map[OperationKind][]telematics.Code{
	Start:   {rental.BookingStateConflict},
	Extend:  {rental.BookingNotExtendable},
	Fee:     {rental.BookingStateConflict},
	Refund:  {rental.RefundExceedsPaid},
	Capture: {rental.BookingStateConflict},
	End:     {rental.BookingNotActive},
}

// drawOperations draws the operations of a booking, in order: the same for the same seed.
func (b booking) drawOperations(seed uint64) []*Operation {
	d := &drawer{rng: rand.New(rand.NewPCG(seed, uint64(b.id))), booking: b, end: b.end}
	if d.chance(5) {
		d.add(Operation{Kind: Fee, Amount: d.amount(10, 900), MayFail: true}) // before the start
	}
	d.add(Operation{Kind: Start})
	if d.chance(5) {
		d.add(Operation{Kind: Start, Wrong: true})
	}
	var middle []Operation
	for range 1 + d.rng.IntN(2) {
		middle = append(middle, Operation{Kind: Extend})
	}
	for range 1 + d.rng.IntN(2) {
		middle = append(middle, Operation{Kind: Fee, Amount: d.amount(50, 9000)})
	}
	if d.chance(30) {
		middle = append(middle, Operation{Kind: Refund, Amount: d.amount(1, 40), patient: true})
	}
	d.rng.Shuffle(len(middle), func(i, j int) { middle[i], middle[j] = middle[j], middle[i] })
	for _, operation := range middle {
		d.add(operation)
	}
	if d.chance(30) {
		d.add(Operation{Kind: Capture, Amount: d.amount(100, 4000), patient: true})
	}
	if d.chance(5) {
		d.add(Operation{Kind: Refund, Amount: 90_000_000, Wrong: true})
	}
	if d.chance(70) {
		d.add(Operation{Kind: End})
		if d.chance(10) {
			d.add(Operation{Kind: End, Wrong: true})
		}
		if d.chance(30) {
			d.add(Operation{Kind: Fee, Amount: d.amount(50, 9000)})
		}
		if d.chance(20) {
			d.add(Operation{Kind: Refund, Amount: d.amount(1, 40), patient: true})
		}
	}
	return d.operations
}

// drawer draws the operations of one booking.
type drawer struct {
	rng        *rand.Rand
	booking    booking
	end        time.Time
	operations []*Operation
}

func (d *drawer) chance(percent int) bool { return d.rng.IntN(100) < percent }

func (d *drawer) amount(least, most int) rental.Minor {
	return rental.Minor(least + d.rng.IntN(most-least+1))
}

func (d *drawer) add(operation Operation) {
	operation.Booking = d.booking.id
	operation.Key = fmt.Sprintf("%d-%d-%s", d.booking.id, len(d.operations)+1, operation.Kind)
	operation.Reason = operation.Key
	operation.MayFail = operation.MayFail ||
		!operation.Wrong && (operation.Kind == Extend || operation.Kind == Refund || operation.Kind == Capture)
	if operation.Kind == Extend {
		d.end = d.end.Add(time.Duration(15*(1+d.rng.IntN(8))) * time.Minute)
		operation.Until = d.end
	}
	operation.twice, operation.repeats = d.chance(15), d.chance(15)
	d.operations = append(d.operations, &operation)
}

// request returns the path and the body of a call.
func (d *Operation) request(c rental.Currency) (path string, body []byte) {
	admin, of := "/api/v1/admin/bookings/%d/%s", map[OperationKind]string{
		Start: "start", End: "end", Fee: "fees", Refund: "refund", Capture: "deposit/capture",
	}
	amount := json.RawMessage(c.Format(d.Amount))
	var content any
	switch d.Kind {
	case Extend:
		admin, of = "/api/v1/client/bookings/%d/%s", map[OperationKind]string{Extend: "extend"}
		content = map[string]any{"end_date": d.Until.Format(time.RFC3339Nano)}
	case Fee:
		content = map[string]any{"kind": "cleaning", "amount": amount, "reason": d.Reason}
	case Refund, Capture:
		content = map[string]any{"amount": amount, "reason": d.Reason}
	}
	if content != nil {
		body, _ = json.Marshal(content) // of plain values
	}
	return fmt.Sprintf(admin, d.Booking, of[d.Kind]), body
}
