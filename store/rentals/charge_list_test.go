package rentals

import (
	"slices"
	"testing"
	"time"

	"motorpool/rental"
)

func TestFindCharges_FiltersAndNamesTheActor(t *testing.T) {
	w := newRentalWorld(t)
	first, second := w.book(draft(1, 0, 4)), w.book(draft(1, 4, 8))
	w.amend(rental.BookingStart, first.ID, noon, beginAt(noon))
	w.amend(rental.BookingFee, first.ID, noon.Add(time.Minute), fineOf(2_550))
	w.exec(`update charges set state = 'authorized', settled = amount where booking_id = $1 and kind = 'deposit'`, first.ID)
	zoe := operator
	zoe.Subject = "zoe"
	capture := asks(zoe, rental.BookingCapture, first.ID, noon.Add(2*time.Minute))
	if _, _, err := w.here.Amend(t.Context(), capture, func(d rental.BookingDetails) (rental.Change, error) {
		return d.CaptureDeposit(capture.Now, 1_000, "scratch")
	}); err != nil {
		t.Fatal(err)
	}
	w.amend(rental.BookingEnd, first.ID, noon.Add(3*time.Hour), finishAt(noon.Add(3*time.Hour)))
	w.amend(rental.BookingStart, second.ID, noon.Add(4*time.Hour), beginAt(noon.Add(4*time.Hour)))

	find := func(q rental.ChargeQuery) []rental.BookedCharge {
		t.Helper()
		found, err := w.there.FindCharges(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	all := find(rental.ChargeQuery{})
	if len(all) != 5 || !slices.IsSortedFunc(all, func(a, b rental.BookedCharge) int { return b.Created.Compare(a.Created) }) {
		t.Fatalf("all charges %+v, want 5, newest first", all)
	}
	newest := all[0]
	if newest.Booking != second.ID || newest.Reference != second.Reference || newest.Agency != 1 || newest.Subject != "anna" ||
		newest.Vehicle.Plate != "M-IM 1" ||
		newest.By != operator.Subject {
		t.Errorf("the newest charge is %+v", newest)
	}
	for _, c := range all {
		if c.Booking == first.ID && c.Kind == rental.DepositCharge && (c.By != "zoe" || c.Reason != "scratch") {
			t.Errorf("the capture is by %q for %q, want zoe and scratch", c.By, c.Reason)
		}
	}
	for name, q := range map[string]struct {
		query rental.ChargeQuery
		want  int
	}{
		"booking":        {rental.ChargeQuery{Booking: first.ID}, 3},
		"state":          {rental.ChargeQuery{States: []rental.ChargeState{rental.Authorized}}, 1},
		"two states":     {rental.ChargeQuery{States: []rental.ChargeState{rental.Authorized, rental.Pending}}, 5},
		"own agency":     {rental.ChargeQuery{Agency: 1}, 5},
		"another agency": {rental.ChargeQuery{Agency: 2}, 0},
		"from":           {rental.ChargeQuery{From: noon.Add(4 * time.Hour)}, 2},
		"to":             {rental.ChargeQuery{To: noon.Add(time.Minute)}, 3},
		"first page":     {rental.ChargeQuery{Limit: 2}, 2},
		"next page":      {rental.ChargeQuery{Limit: 4, Before: all[1].ID}, 3},
		"unknown state":  {rental.ChargeQuery{States: []rental.ChargeState{"\x00"}}, 0},
	} {
		if got := find(q.query); len(got) != q.want {
			t.Errorf("%s: %d charges, want %d", name, len(got), q.want)
		}
	}
}
