package transitions

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// carrier carries one leased transition on, until it ends or must wait.
type carrier struct {
	*Runner
	t   rental.Transition
	log *slog.Logger
}

func newCarrier(r *Runner, t rental.Transition) *carrier {
	return &carrier{Runner: r, t: t, log: r.Logger.With("transition", t.ID, "booking", t.Booking, "kind", string(t.Kind))}
}

// errLeaseLost means that another worker has the transition, or its client wants something of it.
var errLeaseLost = errors.New("the lease of the transition was lost")

// run takes steps until the transition waits, has ended, or another worker has it.
func (c *carrier) run(ctx context.Context) {
	for {
		again, err := c.step(ctx)
		switch {
		case errors.Is(err, errLeaseLost):
			c.wake()
			return
		case err != nil:
			c.log.Warn("transition not carried on; it is tried again", "step", string(c.t.Step), "err", err)
			_, _ = c.Store.Keep(context.WithoutCancel(ctx), c.t, c.Lease, c.Waits.Broken)
			return
		case !again:
			return
		}
	}
}

// step takes the present step. It returns true if the next one can be taken now.
func (c *carrier) step(ctx context.Context) (bool, error) {
	switch c.t.Step {
	case rental.StepPay:
		return c.pay(ctx)
	case rental.StepCommand:
		return c.command(ctx)
	case rental.StepConfirm:
		return c.confirm(ctx)
	case rental.StepUndo:
		return c.undo(ctx)
	case rental.StepRefund:
		return c.refund(ctx)
	default:
		return c.book(ctx, c.Now())
	}
}

// wait writes the transition, which is due again after a time.
func (c *carrier) wait(ctx context.Context, d time.Duration) (bool, error) {
	staff := c.isLong() && c.t.Step != rental.StepPay
	told := staff != c.t.NeedsStaff
	c.t.NeedsStaff = staff
	kept, err := c.Store.Keep(ctx, c.t, c.Lease, d)
	if err == nil && !kept {
		return false, errLeaseLost
	}
	if err == nil && told {
		c.log.Warn("transition has been open for long: a person should look at it", "step", string(c.t.Step))
		c.tell(ctx)
	}
	return false, err
}

// isLong reports whether the transition has been open for Waits.Staff: a person should look at it.
func (c *carrier) isLong() bool { return c.Now().Sub(c.t.Requested) > c.Waits.Staff }

// tell publishes the transition.
func (c *carrier) tell(ctx context.Context) {
	if d, err := c.Store.BookingDetails(ctx, c.t.Booking); err == nil {
		c.changed(d, c.t)
	}
}

// next writes that another step begins, so that readers see it, and a later worker continues there.
func (c *carrier) next(ctx context.Context) (bool, error) {
	kept, err := c.Store.Keep(ctx, c.t, c.Lease, 0)
	if err == nil && !kept {
		return false, errLeaseLost
	}
	return err == nil, err
}

// pay waits until the start is paid, and the deposit is held.
func (c *carrier) pay(ctx context.Context) (bool, error) {
	settled, end := c.awaitPayment(c.t.Booking)
	defer end()
	d, err := c.Store.BookingDetails(ctx, c.t.Booking)
	if err != nil {
		return false, err
	}
	now := c.Now()
	waited := now.Sub(c.t.Since)
	switch progress := d.StartPayment(); {
	case c.t.Wish == rental.GiveUp:
		c.t.Fail(rental.StartCancelled(), rental.StepRefund, now)
	case progress == rental.PaymentMade:
		c.t.Enter(rental.StepCommand, now)
	case progress == rental.PaymentRefused:
		c.t.Fail(d.StartRefused(), rental.StepRefund, now)
	case waited > max(d.Terms.PaymentWait, c.Waits.PayAtLeast):
		c.t.Fail(rental.StartUnpaid(progress), rental.StepRefund, now)
	case waited > payHere:
		return c.wait(ctx, c.Waits.PayLong)
	default:
		select {
		case <-settled:
		case <-time.After(c.Waits.Pay): // another instance may carry the charges out
		case <-ctx.Done():
			return false, ctx.Err()
		}
		return true, nil
	}
	return c.next(ctx)
}

// command orders the command of the transition.
func (c *carrier) command(ctx context.Context) (bool, error) {
	completed, failure, err := c.order(ctx)
	switch {
	case err != nil:
		return c.noResult(ctx, err)
	case failure == nil:
		return c.book(ctx, completed)
	}
	return c.commandFailed(ctx, failure)
}

// noResult waits for a command that another process waits for, or that could not be ordered. What
// cannot be ordered for long counts as a command whose result stays unknown.
func (c *carrier) noResult(ctx context.Context, err error) (bool, error) {
	now := c.Now()
	waited := now.Sub(c.t.Since)
	switch {
	case c.t.Kind == rental.StartRental && waited > c.Waits.StartUnknown:
		c.t.MayBeOpen = true
		c.t.Fail(asError(err), rental.StepUndo, now)
		return c.next(ctx)
	case c.t.Kind != rental.StartRental && c.t.Kind != rental.EndRental && waited > c.Waits.PauseUnknown:
		return c.fail(ctx, asError(err))
	}
	return c.wait(ctx, c.Waits.Confirm)
}

// order orders the command of the present step and attempt, and waits for its result. It returns
// when it was executed, or why it was not. Its error means that the result comes later.
func (c *carrier) order(ctx context.Context) (completed time.Time, failure *telematics.Error, err error) {
	key := c.t.CommandKey()
	receipt, err := c.Cars.Send(ctx, &delivery.Order{
		Vehicle: c.t.Vehicle, Action: c.t.Action(), Actor: c.t.By, RequestID: c.t.RequestID, Booking: int64(c.t.Booking), Budget: c.Budget,
		Idempotency: &telematics.IdempotencyKey{Subject: rental.System().Subject, Key: key, Fingerprint: sha256.Sum256([]byte(key))},
	})
	if receipt.Command != nil {
		c.t.Command = receipt.Command.ID
	}
	if err == nil {
		return receipt.Command.Completed, nil, nil
	}
	failure = asError(err)
	if failure.Command != telematics.NoCommand && failure.Code != telematics.CommandInProgress {
		c.t.Command = failure.Command
	}
	if failure.Outcome == telematics.Undecided && failure.Retryable {
		return time.Time{}, nil, failure
	}
	return time.Time{}, failure, nil
}

// commandFailed decides what follows a command that was not executed, or may have been.
func (c *carrier) commandFailed(ctx context.Context, failure *telematics.Error) (bool, error) {
	now := c.Now()
	opens := c.t.Kind == rental.StartRental
	switch {
	case failure.Outcome == telematics.MayHave && c.t.Override == "":
		c.t.MayBeOpen = c.t.MayBeOpen || opens
		c.t.Enter(rental.StepConfirm, now)
		_, err := c.wait(ctx, c.Waits.Confirm)
		if err == nil {
			c.tell(ctx)
		}
		return false, err
	case c.t.Kind == rental.EndRental && c.t.Override != "": // the vehicle was asked to
		return c.book(ctx, now)
	case c.t.Kind == rental.EndRental && c.mustEnd(failure):
		c.t.Attempt++
		return c.wait(ctx, min(max(failure.RetryAfter, c.Waits.OrderAgain), 2*c.Waits.OrderAgain))
	case opens && (c.t.MayBeOpen || failure.Outcome == telematics.HasFailed):
		c.t.MayBeOpen = true
		c.t.Fail(failure, rental.StepUndo, now)
		return c.next(ctx)
	case opens:
		c.t.Fail(failure, rental.StepRefund, now)
		return c.next(ctx)
	}
	return c.fail(ctx, failure)
}

// mustEnd reports whether the command of an end is ordered again: the vehicle could not be reached,
// or may have executed an earlier one.
func (c *carrier) mustEnd(failure *telematics.Error) bool {
	switch failure.Code {
	case telematics.VehicleStateConflict, telematics.CommandRejected, telematics.CommandFailed:
		return false
	}
	return failure.Retryable || c.t.Attempt > 0
}

// confirm looks for the result of a command that the vehicle has not confirmed.
func (c *carrier) confirm(ctx context.Context) (bool, error) {
	now := c.Now()
	if c.t.Kind == rental.EndRental && c.t.Override != "" {
		return c.book(ctx, now)
	}
	made, err := c.Cars.Command(ctx, c.t.Command)
	if err != nil && c.t.Command != telematics.NoCommand {
		return c.wait(ctx, c.Waits.Broken)
	}
	wish := c.t.Wish
	c.t.Wish = ""
	switch {
	case made.State == telematics.Succeeded:
		return c.book(ctx, made.Completed)
	case made.State.Outcome() == telematics.NotExecuted, made.State.Outcome() == telematics.HasFailed:
		return c.commandFailed(ctx, made.Err())
	case wish == rental.GiveUp && c.t.Kind == rental.StartRental:
		c.t.Fail(rental.StartCancelled(), rental.StepUndo, now)
		return c.next(ctx)
	case wish == rental.RepeatOrder:
		c.t.Attempt++
		c.t.Enter(rental.StepCommand, now)
		return c.next(ctx)
	}
	if opened, err := c.hasOpened(ctx, made); err != nil {
		return c.wait(ctx, c.Waits.Broken)
	} else if opened {
		return c.book(ctx, now)
	}
	return c.stillUnknown(ctx, made)
}

// stillUnknown ends the wait for the result of a command, if it has been long enough.
func (c *carrier) stillUnknown(ctx context.Context, made telematics.Command) (bool, error) {
	now := c.Now()
	waited := now.Sub(c.t.Since)
	switch {
	case c.t.Kind == rental.StartRental && waited > c.Waits.StartUnknown:
		c.t.Fail(made.Err(), rental.StepUndo, now)
		return c.next(ctx)
	case c.t.Kind == rental.EndRental && waited > c.Waits.EndUnknown:
		c.t.Attempt++
		c.t.Enter(rental.StepCommand, now)
		return c.next(ctx)
	case c.t.Kind != rental.StartRental && c.t.Kind != rental.EndRental && waited > c.Waits.PauseUnknown:
		return c.fail(ctx, made.Err())
	}
	return c.wait(ctx, c.Waits.Confirm)
}

// hasOpened reports whether the vehicle has reported, since a command of unknown result was sent,
// that it is as the command wants it. The end of a rental needs the command's own result: no report
// says that a vehicle is immobilised.
func (c *carrier) hasOpened(ctx context.Context, made telematics.Command) (bool, error) {
	if c.t.Kind == rental.EndRental {
		return false, nil
	}
	twin, err := c.Cars.Twin(ctx, c.t.Vehicle)
	if err != nil {
		return false, err
	}
	locked := twin.Snapshot.Flag(telematics.IsLocked)
	sent := made.SentAt
	return locked != nil && !sent.IsZero() && twin.Snapshot[telematics.IsLocked].At.After(sent) &&
		*locked == (c.t.Kind == rental.PauseRental), nil
}

// undo locks a vehicle that may have opened. It is ordered until the vehicle has done it.
func (c *carrier) undo(ctx context.Context) (bool, error) {
	if driven, err := c.isDriven(ctx); err != nil {
		return false, err
	} else if driven { // the client has the vehicle: the rental has begun
		c.t.Failure = nil
		return c.book(ctx, c.Now())
	}
	_, failure, err := c.order(ctx)
	switch {
	case c.t.Override != "": // staff vouch for the vehicle, whatever it answers
		c.t.Enter(rental.StepRefund, c.Now())
		return c.next(ctx)
	case err != nil:
		return c.wait(ctx, c.Waits.Confirm)
	case failure == nil:
		c.t.MayBeOpen = false
		c.t.Enter(rental.StepRefund, c.Now())
		return c.next(ctx)
	}
	c.t.Attempt++
	return c.wait(ctx, min(max(failure.RetryAfter, c.Waits.OrderAgain), 2*c.Waits.OrderAgain))
}

// isDriven reports whether the vehicle has reported its ignition on since the start was requested.
func (c *carrier) isDriven(ctx context.Context) (bool, error) {
	twin, err := c.Cars.Twin(ctx, c.t.Vehicle)
	if err != nil {
		return false, err
	}
	ignition := twin.Snapshot.Text(telematics.Ignition)
	return ignition != nil && *ignition == "on" && twin.Snapshot[telematics.Ignition].At.After(c.t.Requested), nil
}

// refund takes the payments of the start back, and then fails.
func (c *carrier) refund(ctx context.Context) (bool, error) {
	return c.carryOn(ctx, func(d rental.BookingDetails, now time.Time) (rental.Change, time.Duration, error) {
		change, done := d.TakeBackStart(now)
		if !done {
			return change, c.Waits.Refund, nil
		}
		c.t.End(rental.TransitionFailed, now)
		return change, 0, nil
	})
}

// fail ends the transition. The booking is as before.
func (c *carrier) fail(ctx context.Context, because *telematics.Error) (bool, error) {
	return c.carryOn(ctx, func(d rental.BookingDetails, now time.Time) (rental.Change, time.Duration, error) {
		c.t.Failure = rental.NewFailure(because)
		c.t.End(rental.TransitionFailed, now)
		return rental.Change{Booking: d.Booking}, 0, nil
	})
}

// book writes what the transition has done with the rental.
func (c *carrier) book(ctx context.Context, at time.Time) (bool, error) {
	if c.t.Step != rental.StepBook {
		c.t.Enter(rental.StepBook, c.Now())
	}
	return c.carryOn(ctx, func(d rental.BookingDetails, now time.Time) (change rental.Change, _ time.Duration, err error) {
		if at.IsZero() || at.After(now) {
			at = now
		}
		switch c.t.Kind {
		case rental.StartRental:
			change, err = d.Activate(at, c.t.Metres)
		case rental.PauseRental:
			change, err = d.Pause(at)
		case rental.ResumeRental:
			change, err = d.Resume(at)
		default:
			done := false
			if change, done, err = d.Close(latest(c.t.Requested, d.ActualStart), c.t.Metres); err == nil && !done {
				return change, c.Waits.Refund, nil
			}
		}
		if err == nil {
			c.t.End(rental.TransitionDone, now)
		}
		return change, 0, err
	})
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// carryOn writes the transition with a change of its booking, and tells of its end.
func (c *carrier) carryOn(
	ctx context.Context, decide func(rental.BookingDetails, time.Time) (rental.Change, time.Duration, error),
) (bool, error) {
	var seen rental.BookingDetails
	before := c.t
	kept, err := c.Store.Carry(ctx, &c.t, c.Lease, c.entry, func(d rental.BookingDetails) (rental.Change, time.Duration, error) {
		seen = d
		c.t = before
		change, wait, err := decide(d, c.Now())
		c.t.NeedsStaff = wait > 0 && c.isLong()
		seen.Booking = change.Booking
		return change, wait, err
	})
	switch {
	case err != nil:
		c.t = before
		return false, err
	case !kept:
		return false, errLeaseLost
	}
	if c.Nudge != nil {
		c.Nudge()
	}
	if c.t.State != rental.TransitionOpen {
		c.metrics.end(c.t)
		c.log.Info("transition ended", "state", string(c.t.State), "code", string(c.code()))
	}
	if c.t.State != rental.TransitionOpen || c.t.NeedsStaff && !before.NeedsStaff {
		c.changed(seen, c.t)
	}
	return false, nil
}

func (c *carrier) code() telematics.Code {
	if c.t.State == rental.TransitionFailed && c.t.Failure != nil {
		return c.t.Failure.Code
	}
	return ""
}

// entry returns the audit log entry of the transition as it is now; without an action, if it has
// not ended.
func (c *carrier) entry() telematics.Activity {
	now := c.Now()
	e := telematics.Activity{At: now}
	if c.t.State == rental.TransitionOpen {
		return e
	}
	e.Actor, e.Action, e.RequestID, e.Command = c.t.By, rental.TransitionActivity(c.t.Kind), c.t.RequestID, c.t.Command
	e.Latency, e.Outcome, e.Note = now.Sub(c.t.Requested), telematics.Executed, c.t.Override
	if e.Code = c.code(); e.Code != "" {
		e.Outcome = telematics.HasFailed
	}
	return e
}
