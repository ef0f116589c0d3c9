package app

import (
	"time"

	"motorpool/broker"
	"motorpool/rental"
	"motorpool/rental/transitions"
	"motorpool/store/commands"
	"motorpool/store/rentals"
	"motorpool/store/twins"
	"motorpool/telematics"
)

// newTransitions returns the runner that starts, pauses, resumes and ends rentals.
func (s *service) newTransitions() *transitions.Runner {
	return transitions.New(transitions.Config{
		Store: transitionStore{rentals.Bookings{DB: s.postgres}, rentals.Transitions{DB: s.postgres}},
		Cars:  rentedCars{s.broker, s.reported, s.record},
		Areas: s.places,
		Nudge: s.money.collector.Nudge, Publish: s.publishRental, Budget: s.config.Budget,
		Logger: s.log, Metrics: s.registry, Guard: s.panics,
	})
}

// publishRental publishes the event of a transition.
func (s *service) publishRental(d rental.BookingDetails, t rental.Transition) {
	change := &telematics.RentalChange{
		Booking: int64(d.ID), Reference: d.Reference, Status: string(d.State), Transition: t.ID.String(),
		Kind: string(t.Kind), State: string(t.State), Step: string(t.Step), NeedsStaff: t.NeedsStaff, Code: t.Code(),
	}
	s.broker.Publish(telematics.Event{
		Kind: telematics.RentalEvent, Vehicle: d.VehicleID, Agency: d.Agency, At: time.Now().UTC(), Rental: change,
	})
	if t.State == rental.TransitionDone {
		s.publishBooking(d.Booking)
	}
}

// publishBooking publishes the event of a booking that was made or changed.
func (s *service) publishBooking(b rental.Booking) {
	s.broker.Publish(telematics.Event{
		Kind: telematics.BookingEvent, Vehicle: b.VehicleID, Agency: b.Agency, At: time.Now().UTC(),
		Rental: &telematics.RentalChange{Booking: int64(b.ID), Reference: b.Reference, Status: string(b.State)},
	})
}

type transitionStore struct {
	rentals.Bookings
	rentals.Transitions
}

// rentalAPI is what the HTTP API needs of transitions.
type rentalAPI struct {
	*transitions.Runner
	rentals.Transitions
}

// rentedCars sends commands to vehicles, and reads what they report.
type rentedCars struct {
	*broker.Broker
	*twins.Twins
	*commands.Store
}
