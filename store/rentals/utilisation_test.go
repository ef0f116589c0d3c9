package rentals

import (
	"fmt"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

func TestUtilisation_CountsRentalsOfVehiclesInService(t *testing.T) {
	w := newRentalWorld(t)
	for vehicle := telematics.VehicleID(1); vehicle <= 2; vehicle++ {
		w.amend(rental.BookingStart, w.book(draft(vehicle, 0, 8)).ID, noon, beginAt(noon))
	}
	w.exec(`update bookings set state = 'completed', ended_at = $1 where vehicle_id = 1`, noon.Add(2*time.Hour))
	w.book(draft(3, 0, 8)) // never started
	check := func(what string, agency telematics.AgencyID, from, to float64, want string) {
		t.Helper()
		at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
		found, err := w.here.Utilisation(t.Context(), agency, at(from), at(to))
		hours := map[telematics.VehicleID]float64{}
		for _, use := range found {
			hours[use.Vehicle] = use.Rented.Hours()
		}
		if got := fmt.Sprint(hours); err != nil || got != "map["+want+"]" {
			t.Errorf("%s: %s, %v, want %s", what, got, err, want)
		}
	}
	check("since before", 1, -1, 6, "1:2 2:6 3:0 4:0")
	check("of all agencies", 0, -1, 6, "1:2 2:6 3:0 4:0")
	check("a part", 1, 1, 6, "1:1 2:5 3:0 4:0")
	check("before", 1, -1, 0, "1:0 2:0 3:0 4:0")
	check("of another agency", 2, -1, 6, "")
	w.exec(`update vehicles set status = 'maintenance' where id = 2`)
	check("one in maintenance", 1, -1, 6, "1:2 3:0 4:0")
}
