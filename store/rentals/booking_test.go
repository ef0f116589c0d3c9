package rentals

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"motorpool/httpapi"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/pg"
	"motorpool/telematics"
)

var _ httpapi.Bookings = (*fixture)(nil)

func TestBook_StoresAllDetails(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`update agencies set unlock_grace = '40 minutes', payment_wait = '5 minutes', fee_limit = 50000`)
	made := w.book(draft(1, 4, 12))
	read, err := w.there.BookingDetails(t.Context(), made.ID)
	require.NoError(t, err)
	for name, d := range map[string]rental.BookingDetails{"made": made, "read": read} {
		switch {
		case d.Reference != "BK-2026-00001",
			d.State != rental.Upcoming, d.Agency != 1, d.AgencyCode != "MUC", d.Subject != "anna",
			d.VehicleID != 1:
			t.Errorf("%s: booking %+v", name, d.Booking)
		case !d.Start.Equal(noon.Add(4 * time.Hour)),
			!d.End.Equal(noon.Add(12 * time.Hour)), !d.Created.Equal(noon), !d.ActualStart.IsZero(),
			!d.ActualEnd.IsZero():
			t.Errorf("%s: times %+v", name, d.Booking)
		case d.Price != rental.Price{
			Tariff: rental.Tariff{Currency: "EUR", HourlyRate: 1_500, Tax: 100_000, Deposit: 20_000},
			Hours:  800, Subtotal: 12_000, TaxDue: 1_200,
		}, d.Price.Total() != 33_200:
			t.Errorf("%s: price %+v", name, d.Price)
		case d.Terms != rental.Terms{
			Currency: "EUR", Tax: 100_000, FeeLimit: 50_000, CancelCutoff: 2 * time.Hour, Buffer: 15 * time.Minute,
			UnlockGrace: 40 * time.Minute, PaymentWait: 5 * time.Minute, Rules: rental.DefaultRules,
		}:
			t.Errorf("%s: terms %+v", name, d.Terms)
		case d.Vehicle.Plate != "M-IM 1",
			d.Vehicle.Unit != "unit-1", d.Vehicle.Year != 2024,
			!slices.Equal(d.Vehicle.Features, []string{"isofix", "navigation"}):
			t.Errorf("%s: vehicle %+v", name, d.Vehicle)
		case d.Pickup.Name != "Hauptbahnhof", d.Dropoff.Address != "Orleansplatz 1", d.Dropoff.Longitude != 11.6:
			t.Errorf("%s: stations %+v %+v", name, d.Pickup, d.Dropoff)
		case d.Card == nil || d.Card.Label() != "Visa •••• 4242", len(d.Charges) != 0, !d.Next.IsZero(), d.InOther, d.Before:
			t.Errorf("%s: card, charges or next booking of %+v", name, d)
		}
	}
	if _, err := w.here.BookingDetails(t.Context(), 99); codeOf(err) != rental.BookingNotFound {
		t.Errorf("an unknown booking: %v, want %s", err, rental.BookingNotFound)
	}
	lines := w.lines(made.ID)
	if len(lines) != 1 || lines[0].Action != rental.BookingCreate || lines[0].Agency != 1 || lines[0].Vehicle != 1 ||
		lines[0].Outcome != telematics.Executed || lines[0].Actor != operator || lines[0].Details["client"] != "anna" {
		t.Errorf("audit entries %+v", lines)
	}
}

func TestBook_ReferencesRestartEachYear(t *testing.T) {
	w := newRentalWorld(t)
	w.book(draft(1, 1, 2))
	newYear := time.Date(2027, 1, 1, 0, 30, 0, 0, time.FixedZone("CET", 3600)) // still 2026 in UTC
	for i, want := range []string{"BK-2026-00002", "BK-2027-00001"} {
		now := newYear.Add(time.Duration(i) * time.Hour)
		d := draft(1, 0, 0)
		d.Start, d.End = now, now.Add(30*time.Minute)
		made, _, err := w.here.OpenBooking(t.Context(), d, asks(operator, rental.BookingCreate, 0, now))
		if err != nil || made.Reference != want {
			t.Errorf("reference %s, %v; want %s", made.Reference, err, want)
		}
	}
}

func TestBookingDetails_NameOtherBookingsOfTheVehicle(t *testing.T) {
	w := newRentalWorld(t)
	now := time.Now().UTC().Truncate(time.Hour) // BookingDetails uses the clock
	at := func(n int) time.Time { return now.Add(time.Duration(n) * time.Hour) }
	book := func(from, to int) rental.BookingID {
		d := draft(1, 0, 0)
		d.Start, d.End = at(from), at(to)
		made, _, err := w.here.OpenBooking(t.Context(), d, asks(operator, rental.BookingCreate, 0, now))
		require.NoError(t, err)
		return made.ID
	}
	first, second, third := book(0, 2), book(3, 5), book(6, 8)
	// A cancelled booking does not count.
	w.amend(rental.BookingCancel, book(5, 6), now, cancelAt(now))
	w.amend(rental.BookingStart, first, now, beginAt(now))
	for id, want := range map[rental.BookingID]struct {
		next            time.Time
		inOther, before bool
	}{first: {at(3), false, false}, second: {at(6), true, true}, third: {time.Time{}, true, true}} {
		d, err := w.here.BookingDetails(t.Context(), id)
		if err != nil || !d.Next.Equal(want.next) || d.InOther != want.inOther || d.Before != want.before {
			t.Errorf("booking %d: next %v, in another %v, before %v, %v; want %+v", id, d.Next, d.InOther, d.Before, err, want)
		}
	}
	w.amend(rental.BookingEnd, first, at(1), finishAt(at(1)))
	if d, err := w.here.BookingDetails(t.Context(), second); err != nil || d.InOther || d.Before {
		t.Errorf("after the first booking ended: in another %v, before %v, %v", d.InOther, d.Before, err)
	}
	// A start that is taken back opens nothing any more, however long the refund takes.
	w.opens(second, rental.StartRental, at(3))
	for step, want := range map[rental.TransitionStep]bool{rental.StepUndo: true, rental.StepRefund: false} {
		w.exec(`update transitions set step = $1`, step)
		if d, err := w.here.BookingDetails(t.Context(), third); err != nil || d.InOther != want {
			t.Errorf("during %s of the second one's start: in another %v, %v; want %v", step, d.InOther, err, want)
		}
	}
}

func TestBookingDetails_CardIsTheTriedOneElseTheNext(t *testing.T) {
	w := newRentalWorld(t)
	d := draft(1, 0, 1)
	d.Method = w.master
	booking := w.book(d)
	card := func(want string) {
		t.Helper()
		if d, err := w.here.BookingDetails(t.Context(), booking.ID); err != nil || d.Card == nil || d.Card.Label() != want {
			t.Errorf("card %+v %v, want %s", d.Card, err, want)
		}
	}
	card("Mastercard •••• 4444")
	w.amend(rental.BookingStart, booking.ID, noon, beginAt(noon))
	card("Mastercard •••• 4444")
	w.exec(`update charges set brand = 'amex', last_four = '0005' where kind = 'start'`)
	card("American Express •••• 0005")
	// A later payment that was declined, and taken back, paid nothing.
	owe(t, w.here, booking.ID, rental.ExtensionCharge, 1,
		`brand = 'visa', last_four = '0341', state = 'released', created_at = '2030-01-01'`)
	card("American Express •••• 0005")
	// It is refunded: the next one, while nothing is paid.
	w.exec(`update charges set goal = 'release' where kind = 'start'`)
	card("Mastercard •••• 4444")
	w.exec(`update charges set brand = '', last_four = ''`)
	w.exec(`delete from payment_methods where id = $1`, w.master)
	card("Visa •••• 4242")
	w.exec(`update clients set default_payment_method_id = null; delete from payment_methods`)
	if d, err := w.here.BookingDetails(t.Context(), booking.ID); err != nil || d.Card != nil {
		t.Errorf("without a card: %+v, %v; want none", d.Card, err)
	}
}

func TestFindBookings_NewestFirstAndFiltered(t *testing.T) {
	w := newRentalWorld(t)
	var ids []rental.BookingID
	var references []string
	for i := range 5 {
		d := draft(telematics.VehicleID(1+i%2), float64(i), float64(i)+0.5)
		if i == 3 {
			d.Client = "ben"
		}
		made := w.book(d)
		ids, references = append(ids, made.ID), append(references, made.Reference)
	}
	w.amend(rental.BookingCancel, ids[4], noon, cancelAt(noon))
	w.amend(rental.BookingStart, ids[0], noon, beginAt(noon))
	for _, c := range []struct {
		q    rental.BookingQuery
		want []rental.BookingID
	}{
		{rental.BookingQuery{}, []rental.BookingID{ids[4], ids[3], ids[2], ids[1], ids[0]}},
		{rental.BookingQuery{Agency: 1, Client: "anna"}, []rental.BookingID{ids[4], ids[2], ids[1], ids[0]}},
		{rental.BookingQuery{Agency: 2}, nil},
		{rental.BookingQuery{Reference: references[2]}, ids[2:3]},
		{rental.BookingQuery{Reference: references[2], Vehicle: 2}, nil},
		{rental.BookingQuery{Reference: "BK"}, nil},
		{rental.BookingQuery{States: []rental.BookingState{rental.Upcoming}}, []rental.BookingID{ids[3], ids[2], ids[1]}},
		{rental.BookingQuery{States: []rental.BookingState{rental.Active, rental.Cancelled}}, []rental.BookingID{ids[4], ids[0]}},
		{rental.BookingQuery{Vehicle: 2}, []rental.BookingID{ids[3], ids[1]}},
		{rental.BookingQuery{Page: telematics.Page{Limit: 2, Before: int64(ids[3])}}, []rental.BookingID{ids[2], ids[1]}},
		{rental.BookingQuery{Client: "an\x00na"}, nil},
		{rental.BookingQuery{Vehicle: 1, From: noon.Add(time.Hour), To: noon.Add(2 * time.Hour)}, ids[:1]},
		{rental.BookingQuery{From: noon.Add(-time.Hour), To: noon}, nil},
	} {
		found, err := w.there.FindBookings(t.Context(), c.q)
		var got []rental.BookingID
		for _, d := range found {
			got = append(got, d.ID)
		}
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("query %+v: bookings %v, %v; want %v", c.q, got, err, c.want)
		}
		for _, d := range found {
			if wanted := map[bool]int{true: 2}[d.ID == ids[0]]; len(d.Charges) != wanted {
				t.Errorf("booking %d has %d charges, want %d", d.ID, len(d.Charges), wanted)
			}
		}
	}
}

func TestFindBookings_OfATimeByTheActualStartAndEndElseTheAgreed(t *testing.T) {
	w := newRentalWorld(t)
	at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
	early, late := w.book(draft(1, 0, 2)).ID, w.book(draft(2, 0, 1)).ID
	overdue, upcoming, cancelled := w.book(draft(2, 4, 5)).ID, w.book(draft(1, 6, 7)).ID, w.book(draft(1, 8, 9)).ID
	w.amend(rental.BookingStart, early, at(0.5), beginAt(at(0.5)))
	w.amend(rental.BookingEnd, early, at(1), finishAt(at(1)))
	w.amend(rental.BookingStart, late, at(-0.1), beginAt(at(-0.1)))
	w.amend(rental.BookingEnd, late, at(3), finishAt(at(3)))
	w.amend(rental.BookingStart, overdue, at(4), beginAt(at(4))) // it still runs
	w.amend(rental.BookingCancel, cancelled, noon, cancelAt(noon))
	now, never := time.Now(), time.Time{}
	for _, c := range []struct {
		from, to time.Time
		want     []rental.BookingID
	}{
		{at(-1), at(0), []rental.BookingID{late}},
		{at(0), at(0.5), []rental.BookingID{late}},
		{at(0), at(1), []rental.BookingID{late, early}},
		{at(1), at(2), []rental.BookingID{late}},
		{at(3), at(4), nil},
		{at(6), at(7), []rental.BookingID{upcoming, overdue}},
		{at(8.5), never, []rental.BookingID{cancelled, overdue}},
		{never, at(4), []rental.BookingID{late, early}},
		{now.Add(-time.Hour), now, []rental.BookingID{overdue}},
		{now.Add(time.Hour), never, nil},
	} {
		found, err := w.there.FindBookings(t.Context(), rental.BookingQuery{From: c.from, To: c.to})
		got := pg.Map(found, func(d rental.BookingDetails) rental.BookingID { return d.ID })
		slices.Sort(c.want)
		slices.Reverse(c.want)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("from %v to %v: bookings %v, %v; want %v", c.from, c.to, got, err, c.want)
		}
	}
}

// counting is a database connector that counts the statements that return rows.
type counting struct {
	driver.Connector
	queries *atomic.Int64
}

func (c counting) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	return countingConn{conn, c.queries}, err
}

type countingConn struct {
	driver.Conn
	queries *atomic.Int64
}

func (c countingConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	c.queries.Add(1)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
}

func (c countingConn) Prepare(query string) (driver.Stmt, error) {
	stmt, err := c.Conn.Prepare(query)
	return countingStmt{stmt, c.queries}, err
}

type countingStmt struct {
	driver.Stmt
	queries *atomic.Int64
}

func (s countingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.queries.Add(1)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
}

func TestBookings_OneOrAPageIsReadInOneQuery(t *testing.T) {
	w := newRentalWorld(t)
	var last rental.BookingID
	for i := range 6 {
		last = w.book(draft(1, float64(i), float64(i)+1)).ID
	}
	var queries atomic.Int64
	connector, err := pq.NewConnector(w.address)
	require.NoError(t, err)
	db := sqlx.NewDb(sql.OpenDB(counting{connector, &queries}), "postgres")
	defer db.Close()
	p := Bookings{&pg.DB{Pool: db, Prepared: pg.NewStatements(db, 1), Clients: pg.NewStatements(db, 1), Lists: db}}
	if _, err := p.BookingDetails(t.Context(), last); err != nil || queries.Swap(0) != 1 {
		t.Errorf("BookingDetails used more or less than one query, or %v", err)
	}
	if found, err := p.FindBookings(t.Context(), rental.BookingQuery{Agency: 1}); err != nil || len(found) != 6 || queries.Load() != 1 {
		t.Errorf("FindBookings = %d bookings in %d queries, %v; want 6 in 1", len(found), queries.Load(), err)
	}
}

func TestBook_DraftIsRefusedByWhatIsStored(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`update vehicles set hourly_rate = null where id = 2`)
	w.exec(`update vehicles set status = 'maintenance' where id = 3`)
	w.exec(`update units set protocol = 'ovms', installation = '{"type": "NL", "pin": "4711"}' where vehicle_id = 4`)
	another := w.addCard("carl", "visa", "9999")
	for name, c := range map[string]struct {
		change func(*rental.Draft)
		field  string
		code   telematics.Code
	}{
		"unknown agency":           {func(d *rental.Draft) { d.Agency = 7 }, "agency_id", ""},
		"unknown station":          {func(d *rental.Draft) { d.Pickup = 9 }, "pickup_station_id", ""},
		"another agency's station": {func(d *rental.Draft) { d.Dropoff = 3 }, "dropoff_station_id", ""},
		"start in the past":        {func(d *rental.Draft) { d.Start = noon.Add(-time.Hour) }, "start_date", ""},
		"unknown vehicle":          {func(d *rental.Draft) { d.Vehicle = 99 }, "", telematics.VehicleNotFound},
		"no rate":                  {func(d *rental.Draft) { d.Vehicle = 2 }, "", rental.VehicleNotAvailable},
		"withdrawn vehicle":        {func(d *rental.Draft) { d.Vehicle = 3 }, "", rental.VehicleNotAvailable},
		"vehicle that stays shut":  {func(d *rental.Draft) { d.Vehicle = 4 }, "", rental.VehicleNotAvailable},
		"no card":                  {func(d *rental.Draft) { d.Client = "dora" }, "", rental.MethodRequired},
		"another client's card":    {func(d *rental.Draft) { d.Method = another }, "", rental.MethodInvalid},
	} {
		d := draft(1, 1, 2)
		c.change(&d)
		_, _, err := w.here.OpenBooking(t.Context(), d, asks(operator, rental.BookingCreate, 0, noon))
		var field *rental.FieldError
		if errors.As(err, &field) && field.Field != c.field || field == nil && (c.field != "" || codeOf(err) != c.code) {
			t.Errorf("%s: error %v, want field %q, code %q", name, err, c.field, c.code)
		}
	}
	assert.Equal(t, w.count(`select count(*) from bookings`)+w.count(`select count(*) from booking_numbers`), 0, "rows written")
	w.exec(`update agencies set best_effort_unlock = true where id = 1`)
	w.book(draft(4, 1, 2))
}

// By it the end of a rental knows that another odometer counted the kilometres of its start.
func TestBookingDetails_HaveWhenTheVehicleGotItsUnit(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`insert into units (serial) values ('unit-known')`)
	for serial, change := range map[string]string{"unit-new": `{"unit": "unit-new"}`, "unit-known": `{"unit": "unit-known"}`} {
		rented := w.book(draft(1, 0, 1))
		w.amend(rental.BookingStart, rented.ID, noon, beginAt(noon))
		if d, err := w.here.BookingDetails(t.Context(), rented.ID); err != nil || d.UnitSince.After(time.Now().Add(-time.Millisecond)) {
			t.Errorf("before %s the unit is there since %v, %v", serial, d.UnitSince, err)
		}
		before := time.Now()
		_, err := w.here.Edit(t.Context(), telematics.FleetEdit{Vehicle: 1, Fields: []byte(change), Entry: telematics.Activity{
			At: before, Actor: operator, Action: telematics.VehicleChange,
		}})
		require.NoError(t, err)
		d, err := w.here.BookingDetails(t.Context(), rented.ID)
		if err != nil || d.UnitSince.Before(before.Add(-time.Second)) || d.UnitSince.After(time.Now().Add(time.Second)) {
			t.Errorf("%s is there since %v, %v; want about %v", serial, d.UnitSince, err, before)
		}
		w.amend(rental.BookingEnd, rented.ID, noon.Add(time.Minute), finishAt(noon.Add(time.Minute)))
	}
}

// A client pays for no reservation of a vehicle that others have still.
func TestBookingDetails_HaveWhenTheRentalBeforeEnded(t *testing.T) {
	w := newRentalWorld(t)
	before, next := w.book(draft(1, 0, 1)), w.book(draft(1, 1, 2))
	other := w.book(draft(2, 0, 1))
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	for _, d := range []rental.BookingDetails{before, other} {
		w.amend(rental.BookingStart, d.ID, noon, beginAt(noon))
	}
	w.amend(rental.BookingEnd, before.ID, at(80), finishAt(at(80)))
	w.amend(rental.BookingEnd, other.ID, at(85), finishAt(at(85)))
	// Its end was requested before the next booking, whose client waits until it is locked.
	w.exec(`update bookings set ended_at = $2 where id = $1`, int64(before.ID), at(50))
	w.exec(`insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content, ended_at)
		values (gen_random_uuid(), $1, 'end', 'done', 'book', $2, '{}', '{}', $3)`, int64(before.ID), at(50), at(80))
	started := w.amend(rental.BookingStart, next.ID, at(90), beginAt(at(90)))
	ended := w.amend(rental.BookingEnd, next.ID, at(100), finishAt(at(100)))
	for _, d := range []rental.BookingDetails{started, ended} {
		if !d.FreeSince.Equal(at(80)) {
			t.Errorf("the vehicle of the %s booking is free since %v, want %v", d.State, d.FreeSince, at(80))
		}
	}
	// A start of a third one was undone after that, and another one after the rental.
	third := w.book(draft(1, 2, 3))
	w.exec(`insert into transitions (id, booking_id, kind, state, step, requested_at, requested_by, content, ended_at)
		select gen_random_uuid(), $1, 'start', 'failed', 'refund', x, '{}', jsonb_build_object('steps', jsonb_build_array(
			jsonb_build_object('step', 'undo', 'at', x))), x from unnest($2::timestamptz[]) x`,
		int64(third.ID), pq.Array([]time.Time{at(85), at(120)}))
	if d, err := w.here.BookingDetails(t.Context(), next.ID); err != nil || !d.FreeSince.Equal(at(85)) {
		t.Errorf("after a start that was undone the vehicle is free since %v, %v; want %v", d.FreeSince, err, at(85))
	}
	if d, err := w.here.BookingDetails(t.Context(), before.ID); err != nil || !d.FreeSince.IsZero() {
		t.Errorf("the first booking: free since %v, %v; want no time", d.FreeSince, err)
	}
}
