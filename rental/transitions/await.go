package transitions

import (
	"context"
	"slices"
	"time"

	"motorpool/rental"
)

// Await waits until a transition has ended, or its client must confirm the payment, for at most a
// time, and returns it as it is then.
func (r *Runner) Await(ctx context.Context, id rental.TransitionID, wait time.Duration) (rental.Transition, error) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	ended, forget := r.register(id)
	defer forget()
	look := time.NewTicker(awaitEvery)
	defer look.Stop()
	for looked := false; ; looked = true {
		t, err := r.Store.Transition(context.WithoutCancel(ctx), id)
		if err != nil || t.State != rental.TransitionOpen || looked && r.needsOwner(ctx, t) {
			return t, err
		}
		select {
		case t := <-ended:
			return t, nil
		case <-look.C: // another instance may take its steps
		case <-ctx.Done():
			return t, nil
		}
	}
}

// needsOwner reports whether the transition waits for the owner of the card.
func (r *Runner) needsOwner(ctx context.Context, t rental.Transition) bool {
	if t.Step != rental.StepPay {
		return false
	}
	d, err := r.Store.BookingDetails(ctx, t.Booking)
	return err == nil && d.StartPayment() == rental.PaymentNeedsOwner
}

// register returns a channel that gets the transition once it has ended here.
func (r *Runner) register(id rental.TransitionID) (ended <-chan rental.Transition, forget func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waiter := make(chan rental.Transition, 1)
	r.waiters[id] = append(r.waiters[id], waiter)
	return waiter, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		left := slices.DeleteFunc(r.waiters[id], func(other chan rental.Transition) bool { return other == waiter })
		if r.waiters[id] = left; len(left) == 0 {
			delete(r.waiters, id)
		}
	}
}

// ended wakes those who wait for the end of a transition.
func (r *Runner) ended(t rental.Transition) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, waiter := range r.waiters[t.ID] {
		waiter <- t
	}
	delete(r.waiters, t.ID)
}

func (r *Runner) publish(d rental.BookingDetails, t rental.Transition) {
	if r.Publish != nil {
		r.Publish(d, t)
	}
}

// Settled notes that a charge of a booking has a new state: a start may wait for it. It does not
// block.
func (r *Runner) Settled(b rental.BookingID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if settled, waits := r.paying[b]; waits {
		select {
		case settled <- struct{}{}:
		default: // it is noted already
		}
	}
}

// awaitPayment notes that a start waits for its payment, until end is called.
func (r *Runner) awaitPayment(b rental.BookingID) (settled <-chan struct{}, end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := make(chan struct{}, 1)
	r.paying[b] = wait
	return wait, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.paying[b] == wait { // no other worker waits by now
			delete(r.paying, b)
		}
	}
}
