package rentals

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lib/pq"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// The schema refuses these bookings, whatever the program does.
func TestSchema_BookingsOfAVehicleDoNotOverlap(t *testing.T) {
	p := newRentalWorld(t).here
	if _, err := p.Pool.ExecContext(t.Context(), `insert into clients (agency_id, subject) values (1, 'c')`); err != nil {
		t.Fatal(err)
	}
	made := 0
	// put inserts a booking from one hour of a day to another, in a state, started at an hour; -1:
	// not started.
	put := func(vehicle, from, to int, state string, begun int) string {
		made++
		_, err := p.Pool.ExecContext(t.Context(), `
			insert into bookings (reference, state, agency_id, client_id, vehicle_id, pickup_station_id, dropoff_station_id, start_at,
			end_at,
				started_at, ended_at, currency, hourly_rate, tax_ppm, hours, subtotal, tax, deposit, created_at)
			select $1::text, $2::text, 1, id, $3::bigint, 1, 2, $4::timestamptz, $5::timestamptz, case
			when $6 >= 0 then '2026-01-02 00:00Z'::timestamptz + $6 * interval '1 hour' end,
				case when $2 = 'completed' then $5::timestamptz end, 'EUR', 1500, 190000, 100, 1500, 285, 0, now()
			from clients where subject = 'c'`,
			fmt.Sprintf("BK-%d", made),
			state, vehicle, fmt.Sprintf("2026-01-02 %02d:00Z", from), fmt.Sprintf("2026-01-02 %02d:00Z", to), begun,
		)
		var violation *pq.Error
		if errors.As(err, &violation) {
			return violation.Constraint
		}
		require.NoError(t, err)
		return ""
	}
	const overlap, second = "bookings_no_overlap", "bookings_one_active"
	for _, c := range []struct {
		vehicle, from, to int
		state             string
		begun             int
		violates          string
	}{
		{1, 10, 12, "upcoming", -1, ""},
		{1, 11, 13, "upcoming", -1, overlap},
		{1, 10, 12, "upcoming", -1, overlap},
		{1, 9, 13, "upcoming", -1, overlap},
		{1, 12, 13, "upcoming", -1, ""}, // the end does not belong to the booking
		{1, 9, 10, "upcoming", -1, ""},
		{2, 10, 12, "upcoming", -1, ""}, // another vehicle
		{1, 10, 12, "cancelled", -1, ""},
		{1, 10, 12, "completed", 10, ""},
		{1, 11, 12, "active", 11, overlap},
		{1, 14, 16, "active", 14, ""},
		{1, 18, 20, "active", 18, second}, // an overdue booking blocks the next
		{3, 14, 16, "active", 10, ""},     // started early
		{3, 11, 12, "upcoming", -1, overlap},
		{3, 9, 10, "upcoming", -1, ""},
		{4, 14, 16, "active", 15, ""}, // started late
		{4, 14, 15, "upcoming", -1, overlap},
	} {
		assert.Equal(t, put(c.vehicle, c.from, c.to, c.state, c.begun), c.violates, "booking %+v: violates", c)
	}
}
