package rentals

import (
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

func TestFreeVehicles_AfterABookingThatWasNotPickedUp(t *testing.T) {
	w := newRentalWorld(t)
	hours := time.Since(noon).Hours()
	missed, ahead := draft(1, 1, 2), draft(2, hours+1, hours+2)
	w.book(missed)
	w.book(ahead)
	w.book(draft(3, 1, 2))
	w.exec(`update vehicles set status = 'maintenance' where id = 3`)
	taken := w.book(draft(4, 1, 2))
	w.amend(rental.BookingStart, taken.ID, noon, beginAt(noon))
	if more, err := FreeVehicles(t.Context(), w.here.DB, 10); more || err != nil {
		t.Fatalf("FreeVehicles = %v, %v; want no more", more, err)
	}
	for id, want := range map[telematics.VehicleID]telematics.VehicleStatus{
		1: telematics.Available, 2: telematics.Booked, 3: telematics.Maintenance, 4: telematics.InUse,
	} {
		if is := w.status(id); is != want {
			t.Errorf("vehicle %d is %s, want %s", id, is, want)
		}
	}
}

func TestAmend_BookingThatWasNotPickedUpLeavesTheVehicleStatus(t *testing.T) {
	w := newRentalWorld(t)
	w.book(draft(1, 1, 2))
	next := w.book(draft(1, 3, 4))
	w.amend(rental.BookingStart, next.ID, noon.Add(3*time.Hour), beginAt(noon.Add(3*time.Hour)))
	w.amend(rental.BookingEnd, next.ID, noon.Add(4*time.Hour), finishAt(noon.Add(4*time.Hour)))
	if is := w.status(1); is != telematics.Available {
		t.Errorf("the vehicle is %s, want available", is)
	}
}
