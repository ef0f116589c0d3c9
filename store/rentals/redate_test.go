package rentals

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

func TestRedate_KeepsStateAndOrderOfTimes(t *testing.T) {
	w := newRentalWorld(t)
	begin, end := noon.Add(-time.Minute), noon // started before the agreed time
	for i, state := range []rental.BookingState{rental.Upcoming, rental.Active, rental.Completed, rental.Cancelled} {
		d := draft(1, 1, 3)
		d.Vehicle = telematics.VehicleID(i + 1)
		before := w.book(d)
		if state == rental.Active || state == rental.Completed {
			before = w.amend(rental.BookingStart, before.ID, begin, beginAt(begin))
		}
		if state == rental.Completed {
			before = w.amend(rental.BookingEnd, before.ID, end, finishAt(end))
		}
		if state == rental.Cancelled {
			w.exec(`update bookings set state = 'cancelled' where id = $1`, before.ID)
		}
		for _, by := range []time.Duration{26 * time.Hour, -50 * time.Hour} {
			require.NoError(t, w.here.Redate(t.Context(), before.ID, by), "%s, by %v", state, by)
			after, err := w.there.BookingDetails(t.Context(), before.ID)
			switch {
			case err != nil:
				t.Fatal(err)
			case after.State != state,
				!after.Start.Equal(before.Start.Add(by)), !after.End.Equal(before.End.Add(by)),
				after.Created.After(before.Created):
				t.Errorf("%s, moved by %v: booking %+v, was %+v", state, by, after.Booking, before.Booking)
			case after.ActualStart.IsZero() != (state == rental.Upcoming || state == rental.Cancelled),
				after.ActualEnd.IsZero() != (state != rental.Completed):
				t.Errorf("%s, moved by %v: actual times %v to %v", state, by, after.ActualStart, after.ActualEnd)
			case !after.ActualStart.IsZero() && after.ActualStart.Before(after.Start),
				!after.ActualEnd.IsZero() && after.ActualEnd.Before(after.ActualStart):
				t.Errorf(
					"%s, moved by %v: actual times %v to %v, but agreed from %v", state, by, after.ActualStart,
					after.ActualEnd, after.Start,
				)
			}
			before = after
		}
	}
}
