package transitions

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// command orders the command of the transition.
func (w *worker) command(ctx context.Context) (bool, error) {
	completed, failure, err := w.order(ctx)
	switch {
	case err != nil:
		unknown := telematics.Command{ID: w.t.Command, Action: w.t.Action(), State: telematics.Unknown}
		return w.awaitResult(ctx, unknown.Err())
	case failure == nil:
		return w.book(ctx, completed)
	}
	return w.commandFailed(ctx, failure)
}

// order orders the command of the present step and attempt, and waits for its result. It returns
// when it was executed, or why it was not. Its error means that the result comes later.
func (w *worker) order(ctx context.Context) (completed time.Time, failure *telematics.Error, err error) {
	key := w.t.CommandKey()
	receipt, err := w.Cars.Send(ctx, &delivery.Order{
		Vehicle: w.t.Vehicle, Action: w.t.Action(), Actor: w.t.By, RequestID: w.t.RequestID, Booking: int64(w.t.Booking), Budget: w.Budget,
		Idempotency: &telematics.IdempotencyKey{Subject: rental.System().Subject, Key: key, Fingerprint: sha256.Sum256([]byte(key))},
		Allowed:     w.mayOpen,
	})
	if receipt.Command != nil {
		w.t.Command = receipt.Command.ID
	}
	if err == nil {
		return receipt.Command.Completed, nil, nil
	}
	failure = asError(err)
	if failure.Command != telematics.NoCommand && failure.Code != telematics.CommandInProgress {
		w.t.Command = failure.Command
	}
	if failure.Outcome == telematics.Undecided && failure.Retryable {
		return time.Time{}, nil, failure
	}
	return time.Time{}, failure, nil
}

// errTooLate means that no process ordered the command while its client waited for it.
var errTooLate = errors.New("the vehicle would open long after the request")

// mayOpen returns an error if the vehicle must not open any more: the client may have left, or
// another worker has the transition by now, which may have ended it, since this process may have
// stood still before the command was published; or, of a start, the vehicle was withdrawn.
func (w *worker) mayOpen(ctx context.Context) error {
	if a := w.t.Action(); a != telematics.Unlock && a != telematics.UnlockAndEnableDriving {
		return nil // what locks is no danger
	}
	now := w.Now()
	if now.Sub(w.t.Since) > w.Waits.OpenWithin {
		return telematics.Unavailable("The service", errTooLate)
	}
	d, err := w.Store.BookingDetails(ctx, w.t.Booking)
	switch is := d.Transition; {
	case err != nil:
		return telematics.Unavailable("Postgres", err)
	case is == nil || is.ID != w.t.ID || is.State != rental.TransitionOpen || is.Lease != w.t.Lease:
		return telematics.Unavailable("The service", errLeaseLost)
	case w.t.Kind == rental.StartRental:
		return d.MayBegin(now)
	}
	return nil
}

// commandFailed decides what follows a command that was not executed, or may have been.
func (w *worker) commandFailed(ctx context.Context, failure *telematics.Error) (bool, error) {
	now := w.Now()
	ends, opens := w.t.Kind == rental.EndRental, w.t.Kind == rental.StartRental
	switch {
	case ends && w.t.Override != "" && w.isBusy(failure):
		w.t.OrderAgain(now)
		return w.wait(ctx, w.Waits.Confirm)
	case ends && w.t.Override != "": // the vehicle was asked to
		w.t.Overrule(failure, rental.StepBook, now)
		return w.book(ctx, now)
	case failure.Outcome == telematics.MayHave:
		return w.await(ctx)
	case ends && w.mustEnd(failure):
		w.t.OrderAgain(now)
		return w.wait(ctx, w.retryAfter(failure))
	case !ends && w.t.Earlier != telematics.NoCommand && failure.Outcome == telematics.NotExecuted:
		w.t.Command, w.t.Earlier = w.t.Earlier, telematics.NoCommand
		return w.await(ctx)
	case opens && w.isMomentary(failure):
		w.t.OrderAgain(now)
		return w.wait(ctx, w.Waits.Confirm)
	case opens && (!w.t.UnknownSince.IsZero() || failure.Outcome == telematics.HasFailed && !w.didNothing(ctx)):
		w.t.Fail(failure, rental.StepUndo, now)
		return w.next(ctx)
	case opens:
		w.t.Fail(failure, rental.StepRefund, now)
		return w.next(ctx)
	}
	return w.fail(ctx, failure)
}

// didNothing reports whether the vehicle has answered that neither half of the command was executed
// [CMD-6], and that it is locked: there is nothing to undo, and its client's money need not wait
// for a vehicle that cannot lock. An answer that says less counts as opened.
func (w *worker) didNothing(ctx context.Context) bool {
	made, err := w.Cars.Command(ctx, w.t.Command)
	if err != nil || made.Reported == nil || made.Reported.Values[telematics.IsLocked] != true || made.Detail == "" {
		return false
	}
	_, err = telematics.ParseAction(made.Detail)
	return err != nil // else it names the half that was done
}

// isMomentary reports whether nothing was sent for a reason that passes, and the client still
// waits: the payment need not be taken back for it.
func (w *worker) isMomentary(failure *telematics.Error) bool {
	return (failure.Code == telematics.CommandInProgress || failure.Code == telematics.TelematicsUnavailable) &&
		w.t.Step == rental.StepCommand && w.Now().Sub(w.t.Since) < w.Waits.Momentary
}

// isBusy reports whether the vehicle may still execute another command. Staff wait for that, too:
// it may be one that opens, and the vehicle has to be asked to lock after it.
func (w *worker) isBusy(failure *telematics.Error) bool {
	return failure != nil && failure.Code == telematics.CommandInProgress && w.Now().Sub(w.t.Since) < telematics.MaxBudget
}

// mustEnd reports whether the command of an end is ordered again: the vehicle could not be reached,
// or may have executed an earlier one.
func (w *worker) mustEnd(failure *telematics.Error) bool {
	switch failure.Code {
	case telematics.VehicleStateConflict, telematics.CommandRejected, telematics.CommandFailed:
		return false
	}
	wasMoved := failure.Code == telematics.VehicleNotFound // to another agency
	return failure.Retryable || w.t.Attempt > 0 || wasMoved
}

// retryAfter returns after how long a command that must be executed is ordered again.
func (w *worker) retryAfter(failure *telematics.Error) time.Duration {
	if w.isLong() { // each attempt leaves an entry in the audit log
		return 10 * w.Waits.OrderAgain
	}
	return min(max(failure.RetryAfter, w.Waits.OrderAgain), 2*w.Waits.OrderAgain)
}
