package transitions

import (
	"context"
	"errors"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// decision returns what a step does with a booking, and changes the transition accordingly.
type decision func(rental.BookingDetails, time.Time) (c rental.Change, wait time.Duration, err error)

// refund takes the payments of the start back, and then fails.
func (w *worker) refund(ctx context.Context) (bool, error) {
	return false, w.settle(ctx, func(d rental.BookingDetails, now time.Time) (rental.Change, time.Duration, error) {
		change, done := d.TakeBackStart(now)
		if !done {
			return change, w.paymentWait(now), nil
		}
		w.t.GiveUp(now, nil)
		return change, 0, nil
	})
}

// paymentWait returns after how long payments without a result are looked at again: each look locks
// the booking, and a processor may be unavailable for hours.
func (w *worker) paymentWait(now time.Time) time.Duration {
	return min(max(w.Waits.Refund, now.Sub(w.t.Since)/10), 30*w.Waits.Refund)
}

// fail ends the transition. The booking is as before.
func (w *worker) fail(ctx context.Context, because *telematics.Error) (bool, error) {
	return false, w.settle(ctx, func(d rental.BookingDetails, now time.Time) (rental.Change, time.Duration, error) {
		w.t.GiveUp(now, because)
		if w.t.Kind != rental.EndRental {
			return rental.Change{Booking: d.Booking}, 0, nil
		}
		d.Transition = nil
		return rental.SettleUp(d, now), 0, nil // its hold may have ended meanwhile
	})
}

// book writes what the transition has done with the rental at a time, by which a later worker goes
// on. What the booking forbids by now is not tried again: the transition fails, and a start is
// undone.
func (w *worker) book(ctx context.Context, at time.Time) (bool, error) {
	if now := w.Now(); w.t.Step != rental.StepBook {
		w.t.Enter(rental.StepBook, now)
		if !at.IsZero() && at.Before(now) {
			w.t.Since = at
		}
	}
	metres := w.t.Metres
	if w.t.Kind == rental.EndRental {
		if twin, err := w.Cars.Twin(ctx, w.t.Vehicle); err == nil {
			metres = odometer(twin.Snapshot)
		}
	}
	err := w.settle(ctx, func(d rental.BookingDetails, now time.Time) (rental.Change, time.Duration, error) {
		change, done, err := w.bookedChange(d, metres)
		switch {
		case err != nil:
			return rental.Change{}, 0, err
		case !done:
			return change, w.paymentWait(now), nil
		}
		w.t.Succeed(now)
		return change, 0, nil
	})
	var forbidden *telematics.Error
	switch {
	case !errors.As(err, &forbidden) || forbidden.Retryable:
		return false, err
	case w.t.Kind == rental.StartRental:
		w.t.Fail(forbidden, rental.StepUndo, w.Now())
		return w.wait(ctx, w.Waits.OrderAgain)
	}
	return w.fail(ctx, forbidden)
}

// bookedChange returns the change of the booking of a transition that was executed; metres is what
// the odometer says now. done is false if a payment must have a result first.
func (w *worker) bookedChange(d rental.BookingDetails, metres int64) (c rental.Change, done bool, err error) {
	switch paused := d.PausedSince; w.t.Kind {
	case rental.StartRental:
		c, err = d.Activate(w.Now(), w.t.Since, w.t.Metres)
	case rental.PauseRental:
		c, err = d.Pause(w.t.Since)
	case rental.ResumeRental:
		at := w.t.ResumedAt(paused, w.t.Since)
		c, err = d.Resume(at)
		c.Details = map[string]any{"paused_s": int64(at.Sub(paused).Seconds())}
	default:
		if resumed, err := d.Resume(w.t.ResumedAt(paused, w.t.Requested)); err == nil {
			d.Booking = resumed.Booking // also where its client drives on
		}
		end, metres := w.t.ReturnedAt(w.t.Since, metres)
		return d.Close(w.Now(), end, metres)
	}
	return c, err == nil, err
}

// settle writes the transition with a change of its booking, and publishes its end.
func (w *worker) settle(ctx context.Context, decide decision) error {
	var seen rental.BookingDetails
	before := w.t
	written, err := w.Store.SettleTransition(ctx, &w.t, w.Lease, func(d rental.BookingDetails) (rental.Settlement, error) {
		w.t = before // this may be called again
		now := w.Now()
		change, wait, err := decide(d, now)
		w.t.NeedsStaff = wait > 0 && w.isLong()
		seen = d
		seen.Booking = change.Booking
		return rental.Settlement{Change: change, Wait: wait, Activity: w.entry(now)}, err
	})
	switch {
	case err != nil:
		w.t = before
		return err
	case !written:
		return errLeaseLost
	}
	if w.Nudge != nil {
		w.Nudge()
	}
	switch {
	case w.t.State != rental.TransitionOpen:
		w.metrics.end(w.t)
		w.log.Info("transition ended", "state", string(w.t.State), "code", string(w.t.Code()))
		w.publish(seen, w.t)
		w.ended(w.t)
	case w.t.NeedsStaff && !before.NeedsStaff:
		w.publish(seen, w.t)
	}
	return nil
}

// entry returns the audit log entry of the transition as it is now; without an action, if it has
// not ended.
func (w *worker) entry(now time.Time) telematics.Activity {
	if w.t.State == rental.TransitionOpen {
		return telematics.Activity{}
	}
	e := telematics.Activity{
		At: now, Actor: w.t.By, Action: rental.TransitionActivity(w.t.Kind), RequestID: w.t.RequestID, Command: w.t.Command,
		Latency: now.Sub(w.t.Requested), Outcome: telematics.Executed,
	}
	if e.Code = w.t.Code(); e.Code != "" {
		e.Outcome = telematics.HasFailed
	}
	return e
}
