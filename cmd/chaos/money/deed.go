package money

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// DeedKind is what is asked for.
type DeedKind string

const (
	Start   DeedKind = "start"
	Extend  DeedKind = "extend"
	Fee     DeedKind = "fee"
	Refund  DeedKind = "refund"
	Capture DeedKind = "capture"
	End     DeedKind = "end"
)

// Deed is one thing that a caller wants of a booking, and what it was told in the end. It is asked for under one key until the
// answer is definite.
type Deed struct {
	Kind    DeedKind
	Booking rental.BookingID
	Key     string
	Reason  string       // of a fee, a refund or a capture: it names them on record
	Amount  rental.Minor // likewise
	Until   time.Time    // of an extension
	// Wrong is a deed that must be refused, whatever happens.
	Wrong bool
	// Maybe is a deed that may be refused though it is not wrong: while a payment is owed, or not yet made.
	Maybe bool

	Tries  int
	Open   time.Time       // when an attempt was left last without a definite answer, which may still be carried out; zero: never
	Status int             // of the definite answer; zero: none came
	Code   telematics.Code // likewise
	// Repeated is the status of a repetition after success; zero: there was none.
	Repeated int

	patient bool // what it needs may still be on its way: a refusal is not taken for an answer at once
	twice   bool // asked of two instances at once
	repeats bool // asked once more after success
}

// Done reports whether the caller was told that it is done.
func (d Deed) Done() bool { return d.Status/100 == 2 }

func (d Deed) String() string {
	return fmt.Sprintf("%s of booking %d (%s, amount %d, answered %d %s after %d tries)", d.Kind, d.Booking, d.Key, d.Amount, d.Status, d.Code, d.Tries)
}

// refusals are the codes by which each kind may be refused: what the booking's state forbids. Any other is a violation.
var refusals = map[DeedKind][]telematics.Code{
	Start:   {rental.BookingStateConflict},
	Extend:  {rental.BookingNotExtendable},
	Fee:     {rental.BookingStateConflict},
	Refund:  {rental.RefundExceedsPaid},
	Capture: {rental.BookingStateConflict},
	End:     {rental.BookingNotActive},
}

// tour draws what is asked of a booking, in order: the same for the same seed.
func (b booking) tour(seed uint64) []*Deed {
	d := &drawer{rng: rand.New(rand.NewPCG(seed, uint64(b.id))), booking: b, end: b.end}
	if d.chance(5) {
		d.add(Deed{Kind: Fee, Amount: d.amount(10, 900), Maybe: true}) // before the start
	}
	d.add(Deed{Kind: Start})
	if d.chance(5) {
		d.add(Deed{Kind: Start, Wrong: true})
	}
	var middle []Deed
	for range 1 + d.rng.IntN(2) {
		middle = append(middle, Deed{Kind: Extend})
	}
	for range 1 + d.rng.IntN(2) {
		middle = append(middle, Deed{Kind: Fee, Amount: d.amount(50, 9000)})
	}
	if d.chance(30) {
		middle = append(middle, Deed{Kind: Refund, Amount: d.amount(1, 40), patient: true})
	}
	d.rng.Shuffle(len(middle), func(i, j int) { middle[i], middle[j] = middle[j], middle[i] })
	for _, deed := range middle {
		d.add(deed)
	}
	if d.chance(30) {
		d.add(Deed{Kind: Capture, Amount: d.amount(100, 4000), patient: true})
	}
	if d.chance(5) {
		d.add(Deed{Kind: Refund, Amount: 90_000_000, Wrong: true})
	}
	if d.chance(70) {
		d.add(Deed{Kind: End})
		if d.chance(10) {
			d.add(Deed{Kind: End, Wrong: true})
		}
		if d.chance(30) {
			d.add(Deed{Kind: Fee, Amount: d.amount(50, 9000)})
		}
		if d.chance(20) {
			d.add(Deed{Kind: Refund, Amount: d.amount(1, 40), patient: true})
		}
	}
	return d.deeds
}

// drawer draws the deeds of one booking.
type drawer struct {
	rng     *rand.Rand
	booking booking
	end     time.Time
	deeds   []*Deed
}

func (d *drawer) chance(percent int) bool { return d.rng.IntN(100) < percent }

func (d *drawer) amount(least, most int) rental.Minor {
	return rental.Minor(least + d.rng.IntN(most-least+1))
}

func (d *drawer) add(deed Deed) {
	deed.Booking = d.booking.id
	deed.Key = fmt.Sprintf("%d-%d-%s", d.booking.id, len(d.deeds)+1, deed.Kind)
	deed.Reason = deed.Key
	deed.Maybe = deed.Maybe || !deed.Wrong && (deed.Kind == Extend || deed.Kind == Refund || deed.Kind == Capture)
	if deed.Kind == Extend {
		d.end = d.end.Add(time.Duration(15*(1+d.rng.IntN(8))) * time.Minute)
		deed.Until = d.end
	}
	deed.twice, deed.repeats = d.chance(15), d.chance(15)
	d.deeds = append(d.deeds, &deed)
}

// request returns the path and the body of a call.
func (d *Deed) request(c rental.Currency) (path string, body []byte) {
	admin, of := "/api/v1/admin/bookings/%d/%s", map[DeedKind]string{Start: "start", End: "end", Fee: "fees", Refund: "refund", Capture: "deposit/capture"}
	amount := json.RawMessage(c.Format(d.Amount))
	var said any
	switch d.Kind {
	case Extend:
		admin, of = "/api/v1/client/bookings/%d/%s", map[DeedKind]string{Extend: "extend"}
		said = map[string]any{"end_date": d.Until.Format(time.RFC3339Nano)}
	case Fee:
		said = map[string]any{"kind": "cleaning", "amount": amount, "reason": d.Reason}
	case Refund, Capture:
		said = map[string]any{"amount": amount, "reason": d.Reason}
	}
	if said != nil {
		body, _ = json.Marshal(said) // of plain values
	}
	return fmt.Sprintf(admin, d.Booking, of[d.Kind]), body
}
