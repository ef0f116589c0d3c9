package httpapi_test

import (
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
	"motorpool/telematics"
)

// rentals has transitions in memory. Each ends as result says, once it is awaited.
type rentals struct {
	*bookings
	all    map[rental.TransitionID]rental.Transition
	asked  rental.TransitionRequest
	wait   time.Duration                                          // of the last Await
	refuse error                                                  // of Open; nil: it opens
	result func(rental.BookingDetails, *rental.Transition)        // nil: it stays open
	cancel func(rental.TransitionID, rental.BookingDetails) error // nil: it is cancelled
}

func (r *rentals) Open(_ context.Context, q rental.TransitionRequest) (rental.Transition, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.asked = q
	d, ok := r.byID[q.Booking]
	if !ok || !d.VisibleTo(q.Actor) {
		return rental.Transition{}, false, rental.NoSuchBooking(q.Booking)
	}
	if r.refuse != nil {
		return rental.Transition{}, false, r.refuse
	}
	if id, used, err := r.repeated(q.Key); err != nil {
		return rental.Transition{}, false, err
	} else if used {
		return *r.byID[id].Transition, true, nil
	}
	t := rental.Transition{
		ID: uuid.New(), Booking: q.Booking, Kind: q.Kind, State: rental.TransitionOpen, Step: rental.StepCommand, By: q.Actor,
		Requested: q.Now, Progress: rental.Progress{Since: q.Now, Override: q.Override},
	}
	r.put(t)
	r.keep(q.Key, q.Booking, q.Activity)
	return t, false, nil
}

func (r *rentals) put(t rental.Transition) {
	r.all[t.ID] = t
	d := r.byID[t.Booking]
	d.Transition = &t
	r.byID[t.Booking] = d
}

func (r *rentals) Await(_ context.Context, id rental.TransitionID, wait time.Duration) (rental.Transition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wait = wait
	t := r.all[id]
	if r.result != nil && t.State == rental.TransitionOpen {
		r.result(r.byID[t.Booking], &t)
		r.put(t)
	}
	return t, nil
}

func (r *rentals) Cancel(_ context.Context, by telematics.Actor, b rental.BookingID, id rental.TransitionID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	d := r.byID[b]
	if !d.VisibleTo(by) {
		return rental.NoSuchBooking(b)
	}
	if r.cancel != nil {
		return r.cancel(id, d)
	}
	t := r.all[id]
	t.GiveUp(t.Requested, rental.StartCancelled())
	r.put(t)
	return nil
}

func (r *rentals) Transition(_ context.Context, id rental.TransitionID) (rental.Transition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t, ok := r.all[id]; ok {
		return t, nil
	}
	return rental.Transition{}, rental.NoSuchTransition(id)
}

func (r *rentals) OfBooking(_ context.Context, b rental.BookingID) ([]rental.Transition, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var found []rental.Transition
	for _, t := range r.all {
		if t.Booking == b {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, func(a, b rental.Transition) int { return b.Requested.Compare(a.Requested) })
	return found, nil
}
