package rentals

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/store/storetest"
)

// A dump may be restored into a server that does not start again. An instance then finds another
// sequence, and raises the numbers of commands.
func TestNumbers_ReferencesJumpWhereADumpWasRestored(t *testing.T) {
	w := newRentalWorld(t)
	var hour float64
	book := func() string {
		t.Helper()
		hour++
		d, _, err := w.here.OpenBooking(t.Context(), rental.Draft{
			Agency: 1, Client: "anna", Vehicle: 1, Start: time.Now().Add(time.Duration(hour) * time.Hour),
			End: time.Now().Add(time.Duration(hour+1) * time.Hour), Pickup: 1, Dropoff: 2,
		}, asks(operator, rental.BookingCreate, 0, time.Now().UTC()))
		require.NoError(t, err)
		return d.Reference[len("BK-2026-"):]
	}
	for _, want := range [][]string{{"00001", "00002", "00003"}, {"100004", "100005"}, {"200006"}} {
		w.exec(`select raise_commands_seq(true)`)
		for _, n := range want {
			assert.Equal(t, book(), n, "the reference")
		}
	}
}

// A server that was restored, or promoted, has another start than the one that issued a number
// last.
func TestNumbers_JumpOnceInEachLifeOfTheServer(t *testing.T) {
	db := open(t, storetest.NewDatabase(t))
	get := func(query string) (n int64) {
		t.Helper()
		require.NoError(t, db.Pool.GetContext(t.Context(), &n, query))
		return n
	}
	exec := func(statement string) {
		t.Helper()
		storetest.Exec(t, db.Pool, statement)
	}
	exec(`insert into agencies (id, code, name) values (1, 'A', 'A')`)
	number := func(year string) int64 {
		return get(
			`insert into booking_numbers as n (year, last) values (` + year +
				`, 1) on conflict (year) do update set last = n.last + 1 returning last`,
		)
	}
	client := func() int64 {
		return get(`insert into clients (agency_id, subject) values (1, gen_random_uuid()::text) returning id`)
	}
	newLife := func() {
		exec(`update booking_numbers set server_start = server_start - interval '1 day'`)
		exec(`update id_numbering set server_start = server_start - interval '1 day'`)
	}
	for want := range int64(3) {
		if n := number("2026"); n != want+1 {
			t.Fatalf("number %d, want %d", n, want+1)
		}
	}
	first := client()
	assert.Equal(t, client(), first+1, "ids %d", first)
	newLife()
	if a, b := number("2026"), number("2026"); a != 100_004 || b != 100_005 {
		t.Errorf("after a restore the numbers are %d, %d; want a jump by 100000, once", a, b)
	}
	if a, b := client(), client(); a < first+1_000_000 || b != a+1 {
		t.Errorf("after a restore the ids are %d, %d after %d; want a jump by a million, once", a, b, first)
	}
	assert.Equal(t, number("2027"), 1, "the first number of a year")
	newLife()
	if n := number("2028"); n != 100_001 {
		t.Errorf("the first number of a year after a restore is %d, want a jump: it may have been issued", n)
	}
}
