package rentals

import (
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
	booked := func(from, to float64) func(*rentalWorld) { return func(w *rentalWorld) { w.book(draft(1, from, to)) } }
	cancelled := func(w *rentalWorld) { w.amend(rental.BookingCancel, w.book(draft(1, 3, 4)).ID, noon, cancelAt(noon)) }
	opened := func(w *rentalWorld) { w.opens(w.book(draft(1, 0, 1)).ID, rental.StartRental, noon) }
	overdue := func(w *rentalWorld) { w.amend(rental.BookingStart, w.book(draft(1, 0, 1)).ID, noon, beginAt(noon)) }
	// The client is allowed to start it already, and its vehicle is being opened.
	starting := func(w *rentalWorld) { w.opens(w.book(draft(1, 2.2, 3)).ID, rental.StartRental, late) }
	for what, c := range map[string]struct {
		before   func(*rentalWorld)
		from, to float64 // hours after noon
		taken    bool
	}{
		"without bookings":              {func(*rentalWorld) {}, 2, 3, false},
		"another booking":               {booked(2.5, 3), 2, 2.6, true},
		"another one after it":          {booked(2.5, 3), 2, 2.5, false},
		"another one before it":         {booked(2, 2.5), 2.5, 3, false},
		"a cancelled one":               {cancelled, 3, 4, false},
		"one that was not picked up":    {booked(0, 1), 2, 3, false},
		"a rental that is overdue":      {overdue, 2, 3, true},
		"an overdue one, in an hour":    {overdue, 3, 4, false},
		"a start that is open":          {starting, 2, 2.2, true},
		"after that":                    {starting, 3, 4, false},
		"a start that is open, overdue": {opened, 2, 3, true},
	} {
		w := newOfferWorld(t)
		w.exec(`update units set last_seen = $1`, late)
		w.exec(`update rental_rules set rules = rules || '{"min_length_minutes": 1}'`)
		c.before(w)
		d := ownDraft(1, c.from, c.to)
		d.Client = "ben"
		offers, _, err := w.here.FindOffers(t.Context(), rental.OfferQuery{
			Agency: 1, Near: middle, HasNear: true, Radius: 150, Limit: 10, Now: late, From: d.Start, To: d.End,
		})
		if err != nil || (len(offers) == 0) != c.taken {
			t.Errorf("%s: %d offers, %v; want it taken: %v", what, len(offers), err, c.taken)
		}
		span := rental.Span{From: d.Start, To: d.End}
		free, err := w.here.FreeTimes(t.Context(), 1, 1, span, late)
		if err != nil || (len(free) != 1 || free[0] != span) != c.taken {
			t.Errorf("%s: free %v, %v; want it taken: %v", what, free, err, c.taken)
		}
		wants := func(err error) {
			if (codeOf(err) == rental.VehicleNotAvailable) != c.taken || !c.taken && err != nil {
				t.Errorf("%s: %v; want it taken: %v", what, err, c.taken)
			}
		}
		_, err = w.here.Quote(t.Context(), rental.QuoteRequest{Agency: 1, Client: "ben", Vehicle: 1, Start: d.Start, End: d.End, Now: late})
		wants(err)
		_, err = w.reserve(d, late)
		wants(err)
	}
}

// opens opens a transition of a booking, which is carried on by nothing.
func (w *rentalWorld) opens(id rental.BookingID, kind rental.TransitionKind, now time.Time) {
	w.t.Helper()
	r := asks(operator, rental.TransitionActivity(kind), id, now)
	opened := rental.Transition{
		ID: uuid.New(), Booking: id, Kind: kind, State: rental.TransitionOpen, Step: rental.StepCommand, By: operator, Requested: now,
		Lease: uuid.New(),
	}
	_, err := Transitions{w.here.DB}.OpenTransition(w.t.Context(), r, opened, time.Minute,
		func(d rental.BookingDetails) (rental.Change, error) { return d.Open(now, kind, telematics.Admin) })
	require.NoError(w.t, err)
}
