package rentals

import (
	"reflect"
	"testing"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

func TestRunning_HasVehiclesOfActiveBookingsByProtocol(t *testing.T) {
	w := newRentalWorld(t)
	w.exec(`update units set protocol = 'ovms' where serial in ('unit-1', 'unit-2')`)
	running, _, other := w.book(draft(1, 0, 8)), w.book(draft(2, 0, 8)), w.book(draft(3, 0, 8))
	for _, b := range []rental.BookingDetails{running, other} {
		w.amend(rental.BookingStart, b.ID, noon, beginAt(noon))
	}
	want := func(when string, vehicles ...telematics.Vehicle) {
		t.Helper()
		found, err := w.here.Running(t.Context(), []telematics.Protocol{"ovms", "morse"})
		if err != nil || !reflect.DeepEqual(append([]telematics.Vehicle{}, found...), append([]telematics.Vehicle{}, vehicles...)) {
			t.Errorf("%s: %v, %v, want %v", when, found, err, vehicles)
		}
	}
	want("one active, one upcoming", telematics.Vehicle{ID: 1, Unit: "unit-1", Protocol: "ovms"})
	w.amend(rental.BookingEnd, running.ID, noon.Add(time.Hour), finishAt(noon.Add(time.Hour)))
	want("one upcoming")
}
