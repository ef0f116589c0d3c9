package rentals

import (
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
	of := func(agency telematics.AgencyID, from, to float64) rental.Utilisation {
		t.Helper()
		at := func(hours float64) time.Time { return noon.Add(time.Duration(hours * float64(time.Hour))) }
		found, err := w.here.Utilisation(t.Context(), agency, at(from), at(to))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	check := func(what string, got rental.Utilisation, vehicles int, used time.Duration) {
		t.Helper()
		if want := (rental.Utilisation{Vehicles: vehicles, Used: used}); got != want {
			t.Errorf("%s: %+v, want %+v", what, got, want)
		}
	}
	check("since before", of(1, -1, 6), 4, 8*time.Hour)
	check("of all agencies", of(0, -1, 6), 4, 8*time.Hour)
	check("a part", of(1, 1, 6), 4, 6*time.Hour)
	check("before", of(1, -1, 0), 4, 0)
	check("of another agency", of(2, -1, 6), 0, 0)
	w.exec(`update vehicles set status = 'maintenance' where id = 2`)
	check("one in maintenance", of(1, -1, 6), 3, 2*time.Hour)
}
