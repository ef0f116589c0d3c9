package rentals

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// What is offered, free, quoted and booked is the same.
func TestTaken_IsTheSameWhateverReadsIt(t *testing.T) {
	late := noon.Add(2 * time.Hour)
	w := newOfferWorld(t)
	w.exec(`update rental_rules set rules = rules || '{"min_length_minutes": 1, "max_open_bookings": 0}'`)
	booked := func(from, to float64) func(telematics.VehicleID) {
		return func(id telematics.VehicleID) { w.book(draft(id, from, to)) }
	}
	cancelled := func(id telematics.VehicleID) {
		w.amend(rental.BookingCancel, w.book(draft(id, 3, 4)).ID, noon, cancelAt(noon))
	}
	opened := func(id telematics.VehicleID) { w.opens(w.book(draft(id, 0, 1)).ID, rental.StartRental, noon) }
	overdue := func(id telematics.VehicleID) {
		w.amend(rental.BookingStart, w.book(draft(id, 0, 1)).ID, noon, beginAt(noon))
	}
	// The client is allowed to start it already, and its vehicle is being opened.
	starting := func(id telematics.VehicleID) { w.opens(w.book(draft(id, 2.2, 3)).ID, rental.StartRental, late) }
	refunding := func(id telematics.VehicleID) {
		starting(id)
		w.exec(`update transitions set step = 'refund' where booking_id in (select id from bookings where vehicle_id = $1)`, id)
	}
	for what, c := range map[string]struct {
		before   func(telematics.VehicleID)
		from, to float64 // hours after noon
		taken    bool
	}{
		"without bookings":              {func(telematics.VehicleID) {}, 2, 3, false},
		"another booking":               {booked(2.5, 3), 2, 2.6, true},
		"another one after it":          {booked(2.5, 3), 2, 2.5, false},
		"another one before it":         {booked(2, 2.5), 2.5, 3, false},
		"a cancelled one":               {cancelled, 3, 4, false},
		"one that was not picked up":    {booked(0, 1), 2, 3, false},
		"a rental that is overdue":      {overdue, 2, 3, true},
		"an overdue one, in an hour":    {overdue, 3, 4, false},
		"a start that is open":          {starting, 2, 2.2, true},
		"after that":                    {starting, 3, 4, false},
		"a start that is taken back":    {refunding, 2, 2.2, false},
		"a start that is open, overdue": {opened, 2, 3, true},
	} {
		id := w.anotherOffered()
		w.exec(`update units set last_seen = $1`, late)
		c.before(id)
		d := ownDraft(id, c.from, c.to)
		d.Client = "ben"
		offered := w.offered(func(q *rental.OfferQuery) { q.Limit, q.Now, q.From, q.To = 100, late, d.Start, d.End })
		if slices.Contains(offered, id) == c.taken {
			t.Errorf("%s: offered %v; want it taken: %v", what, !c.taken, c.taken)
		}
		span := rental.Span{From: d.Start, To: d.End}
		free, err := w.here.FreeTimes(t.Context(), 1, id, span, late)
		if err != nil || (len(free) != 1 || free[0] != span) != c.taken {
			t.Errorf("%s: free %v, %v; want it taken: %v", what, free, err, c.taken)
		}
		wants := func(err error) {
			if (codeOf(err) == rental.VehicleNotAvailable) != c.taken || !c.taken && err != nil {
				t.Errorf("%s: %v; want it taken: %v", what, err, c.taken)
			}
		}
		_, err = w.here.Quote(t.Context(), rental.QuoteRequest{
			Agency: 1, Client: "ben", Vehicle: id, Start: d.Start, End: d.End, Now: late,
		})
		wants(err)
		_, err = w.reserve(d, late)
		wants(err)
	}
}

// opens opens a transition of a booking, which is carried on by nothing. It calls functions in the
// transaction, once that has its locks.
func (w *rentalWorld) opens(id rental.BookingID, kind rental.TransitionKind, now time.Time, meanwhile ...func()) {
	w.t.Helper()
	r := asks(operator, rental.TransitionActivity(kind), id, now)
	opened := rental.Transition{
		ID: uuid.New(), Booking: id, Kind: kind, State: rental.TransitionOpen, Step: rental.StepCommand, By: operator, Requested: now,
		Lease: uuid.New(),
	}
	_, err := Transitions{w.here.DB}.OpenTransition(w.t.Context(), r, opened, time.Minute,
		func(d rental.BookingDetails) (rental.Change, error) {
			for _, do := range meanwhile {
				do()
			}
			return d.Open(now, kind, telematics.Admin)
		})
	require.NoError(w.t, err)
}
