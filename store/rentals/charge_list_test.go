package rentals

import (
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
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
	captured, _, err := w.here.Amend(t.Context(), capture, func(d rental.BookingDetails) (rental.Change, error) {
		return d.CaptureDeposit(capture.Now, 1_000, "scratch")
	})
	require.NoError(t, err)
	if c := captured.Charges[1]; c.Goal != rental.Capture || c.CaptureAmount != 1_000 || !c.NextAttempt.Equal(capture.Now) {
		t.Errorf("deposit %+v, want its capture due now", c)
	}
	w.amend(rental.BookingEnd, first.ID, noon.Add(3*time.Hour), finishAt(noon.Add(3*time.Hour)))
	w.amend(rental.BookingStart, second.ID, noon.Add(4*time.Hour), beginAt(noon.Add(4*time.Hour)))

	w.exec(`update charges set paid_at = created_at - interval '4 hours' where booking_id = $1 and kind = 'start'`, second.ID)
	find := func(q rental.ChargeQuery) []rental.BookedCharge {
		t.Helper()
		found, err := w.there.FindCharges(t.Context(), q)
		require.NoError(t, err)
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
		"paid from":      {rental.ChargeQuery{From: noon, To: noon.Add(time.Hour), ByPaid: true}, 1},
		"first page":     {rental.ChargeQuery{Limit: 2}, 2},
		"next page":      {rental.ChargeQuery{Limit: 4, Before: all[1].ID}, 3},
		"client":         {rental.ChargeQuery{Client: "anna", Agency: 1}, 5},
		"another client": {rental.ChargeQuery{Client: "ben"}, 0},
		"no client":      {rental.ChargeQuery{Client: "\x00"}, 0},
		"unknown state":  {rental.ChargeQuery{States: []rental.ChargeState{"\x00"}}, 0},
	} {
		assert.Equal(t, len(find(q.query)), q.want, "%s: charges", name)
	}
}

func TestFindClients_ByAPartOfTheirName(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into clients (agency_id, subject) values (2, 'Joanna'), (2, 'a%a')`)
	for _, c := range []struct {
		agency telematics.AgencyID
		text   string
		limit  int
		want   []string
	}{
		{0, "ANN", 20, []string{"anna", "Joanna"}}, {1, "ann", 20, []string{"anna"}}, {0, "ann", 1, []string{"anna"}},
		{0, "%", 20, []string{"a%a"}}, {0, "a\x00", 20, nil},
	} {
		found, err := w.there.FindClients(t.Context(), c.agency, c.text, c.limit)
		var names []string
		for _, client := range found {
			names = append(names, client.Subject)
		}
		slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
		if err != nil || !slices.Equal(names, c.want) {
			t.Errorf("%q of agency %d: %q, %v; want %q", c.text, c.agency, names, err, c.want)
		}
	}
}

func TestClientMethods_AreThoseOfTheClientAtItsAgency(t *testing.T) {
	w := newRentalWorld(t)
	methods := func(agency telematics.AgencyID, client string) int {
		t.Helper()
		found, err := w.there.ClientMethods(t.Context(), agency, client)
		require.NoError(t, err)
		return len(found)
	}
	if own, others, unknown := methods(1, "anna"), methods(2, "anna"), methods(1, "zoe"); own != 2 || others != 0 || unknown != 0 {
		t.Errorf("%d cards, of another agency's %d, of an unknown client %d; want 2, none, none", own, others, unknown)
	}
	var clients int
	if err := w.there.Pool.Get(&clients, `select count(*) from clients where subject = 'zoe'`); err != nil || clients != 0 {
		t.Errorf("the read made %d clients, %v", clients, err)
	}
}
