package httpapi_test

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/google/uuid"

	"motorpool/rental"
)

// rentals has transitions in memory. Each ends as result says, once it is awaited.
type rentals struct {
	*bookings
	all    map[rental.TransitionID]rental.Transition
	asked  rental.TransitionRequest
	wait   time.Duration                                   // of the last Await
	refuse error                                           // of Open; nil: it opens
	result func(rental.BookingDetails, *rental.Transition) // nil: it stays open
	slow   bool                                            // a start that is given up stays open
	step   rental.TransitionStep                           // of what is opened; empty: command
	last   rental.TransitionID                             // that was opened
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
	if err := q.Admit(d); err != nil {
		return rental.Transition{}, false, err
	}
	t := rental.Transition{
		ID: uuid.New(), Booking: q.Booking, Kind: q.Kind, State: rental.TransitionOpen, By: q.Actor,
		Step:      cmp.Or(r.step, rental.StepCommand),
		Requested: q.Now, Progress: rental.Progress{Since: q.Now, Override: q.Override},
	}
	r.last = t.ID
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

func (r *rentals) Cancel(_ context.Context, q rental.Request, id rental.TransitionID) (rental.Transition, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, used, err := r.repeated(q.Key); err != nil || used {
		return r.all[id], used, err
	}
	t := r.all[id]
	wanted, err := t.Cancel()
	if err != nil {
		return rental.Transition{}, false, err
	}
	if wanted != "" && !r.slow {
		t.GiveUp(t.Requested, rental.StartCancelled())
	}
	r.put(t)
	r.keep(q.Key, q.Booking, q.Activity)
	return t, false, nil
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
