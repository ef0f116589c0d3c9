package app

import (
	"context"
	"time"

	"motorpool/broker"
	"motorpool/rental"
	"motorpool/rental/transitions"
	"motorpool/store/rentals"
	"motorpool/telematics"
)

// newTransitions returns the runner that starts, pauses, resumes and ends rentals.
func (s *service) newTransitions() *transitions.Runner {
	return transitions.New(transitions.Config{
		Store: transitionStore{rentals.Bookings{DB: s.postgres}, rentals.Transitions{DB: s.postgres}},
		Cars:  rentedCars{s.broker, fleet{s.cars, s.record, s.auditLog, s.reported}},
		Areas: s.places,
		Nudge: s.money.collector.Nudge, Publish: s.publishRental, Budget: s.config.Budget,
		Logger: s.log, Now: now, Metrics: s.registry, Guard: s.panics,
	})
}

// publishRental publishes the event of a transition.
func (s *service) publishRental(d rental.BookingDetails, t rental.Transition) {
	change := &telematics.RentalChange{
		Booking: int64(d.ID), Reference: d.Reference, Status: string(d.State), Transition: t.ID.String(),
		Kind: string(t.Kind), State: string(t.State), Step: string(t.Step), NeedsStaff: t.NeedsStaff,
	}
	if t.State == rental.TransitionFailed && t.Failure != nil {
		change.Code = t.Failure.Code
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
	fleet fleet
}

// Twin returns a vehicle with what it has reported.
func (c rentedCars) Twin(ctx context.Context, id telematics.VehicleID) (telematics.Twin, error) {
	return c.fleet.twins.Twin(ctx, id)
}

// Command returns a command as it is on record.
func (c rentedCars) Command(ctx context.Context, id telematics.CommandID) (telematics.Command, error) {
	return c.fleet.Command(ctx, id)
}
