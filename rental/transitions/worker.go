package transitions

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"motorpool/rental"
	"motorpool/telematics"
)

// worker takes the steps of one leased transition, until it ends or must wait.
type worker struct {
	*Runner
	t   rental.Transition
	log *slog.Logger
}

func newWorker(r *Runner, t rental.Transition) *worker {
	return &worker{Runner: r, t: t, log: r.Logger.With("transition", t.ID, "booking", t.Booking, "kind", string(t.Kind))}
}

// errLeaseLost means that another worker has the transition, or its client wants something of it.
var errLeaseLost = errors.New("the lease of the transition was lost")

// run takes steps until the transition waits, has ended, or another worker has it.
func (w *worker) run(ctx context.Context) {
	for {
		again, err := w.step(ctx)
		switch {
		case errors.Is(err, errLeaseLost):
			w.wake()
			return
		case err != nil:
			w.log.Warn("step of transition failed, will be retried", "step", string(w.t.Step), "err", err)
			_, _ = w.wait(context.WithoutCancel(ctx), w.Waits.Broken)
			return
		case !again:
			return
		}
	}
}

// step takes the present step. It returns true if the next one can be taken now.
func (w *worker) step(ctx context.Context) (bool, error) {
	// No worker looked at it for longer than its client may have waited: nothing opens for that
	// one.
	now := w.Now()
	stoodStill := now.Sub(w.t.Since) > w.Waits.OpenWithin && now.Sub(w.t.Looked) > w.Waits.OpenWithin
	w.t.Looked = now
	switch w.t.Step {
	case rental.StepPay:
		return w.pay(ctx, stoodStill)
	case rental.StepCommand:
		return w.command(ctx)
	case rental.StepConfirm:
		return w.confirm(ctx, stoodStill)
	case rental.StepUndo:
		return w.undo(ctx)
	case rental.StepRefund:
		return w.refund(ctx)
	default:
		return w.book(ctx, w.t.Since)
	}
}

// wait writes the transition, which is due again after a time.
func (w *worker) wait(ctx context.Context, d time.Duration) (bool, error) {
	staff := w.isLong() && w.t.Step != rental.StepPay
	called := staff && !w.t.NeedsStaff
	w.t.NeedsStaff = staff
	written, err := w.Store.WriteTransition(ctx, w.t, w.Lease, d)
	if err == nil && !written {
		return false, errLeaseLost
	}
	if err == nil && called {
		w.log.Warn("transition has been open for long, a person should look at it", "step", string(w.t.Step))
		w.publishNow(ctx)
	}
	return false, err
}

// isLong reports whether the transition has been open for Waits.Staff, or has waited that long for
// its vehicle: a person should look at it.
func (w *worker) isLong() bool {
	since := w.t.Requested
	if w.t.UnknownSince.After(since) {
		since = w.t.UnknownSince
	}
	return w.Now().Sub(since) > w.Waits.Staff
}

// publishNow publishes the transition with its booking as it is now.
func (w *worker) publishNow(ctx context.Context) {
	if d, err := w.Store.BookingDetails(ctx, w.t.Booking); err == nil {
		w.publish(d, w.t)
	}
}

// next writes that another step begins, so that readers see it, and a later worker continues there.
func (w *worker) next(ctx context.Context) (bool, error) {
	written, err := w.Store.WriteTransition(ctx, w.t, w.Lease, 0)
	if err == nil && !written {
		return false, errLeaseLost
	}
	return err == nil, err
}

// pay waits until the start is paid, and the deposit is held.
func (w *worker) pay(ctx context.Context, stoodStill bool) (bool, error) {
	settled, end := w.awaitPayment(w.t.Booking)
	defer end()
	d, err := w.Store.BookingDetails(ctx, w.t.Booking)
	if err != nil {
		return false, err
	}
	now := w.Now()
	waited, limit := now.Sub(w.t.Since), max(d.Terms.PaymentWait, w.Waits.PayAtLeast)
	forbidden := d.MayBegin(now) // by now: the payment may take long
	switch progress := d.StartPayment(); {
	case w.t.Wish == rental.GiveUp:
		w.t.Fail(rental.StartCancelled(), rental.StepRefund, now)
	case progress == rental.PaymentMade && stoodStill:
		w.t.Fail(rental.StartUnpaid(rental.PaymentAwaits), rental.StepRefund, now)
	case progress == rental.PaymentRefused:
		w.t.Fail(d.StartRefused(), rental.StepRefund, now)
	case forbidden != nil:
		w.t.Fail(asError(forbidden), rental.StepRefund, now)
	case progress == rental.PaymentMade:
		w.t.Enter(rental.StepCommand, now)
	case waited > limit:
		w.t.Fail(rental.StartUnpaid(progress), rental.StepRefund, now)
	case waited > payHere:
		return w.wait(ctx, w.Waits.PayLong)
	default:
		select {
		case <-settled:
		case <-time.After(w.Waits.Pay): // another instance may carry the charges out
		case <-ctx.Done():
			return false, ctx.Err()
		}
		return true, nil
	}
	return w.next(ctx)
}

// await begins to wait for the result of a command that the vehicle has not confirmed.
func (w *worker) await(ctx context.Context) (bool, error) {
	now := w.Now()
	if w.t.UnknownSince.IsZero() {
		w.t.UnknownSince = now
	}
	if w.t.Step != rental.StepConfirm {
		w.t.Enter(rental.StepConfirm, now)
	}
	_, err := w.wait(ctx, w.Waits.Confirm)
	if err == nil {
		w.publishNow(ctx)
	}
	return false, err
}

// confirm looks for the result of a command that the vehicle has not confirmed.
func (w *worker) confirm(ctx context.Context, stoodStill bool) (bool, error) {
	now := w.Now()
	made, err := w.newestResult(ctx)
	if err != nil {
		return w.wait(ctx, w.Waits.Broken)
	}
	overridden := w.t.Kind == rental.EndRental && w.t.Override != ""
	switch outcome := made.State.Outcome(); {
	case outcome == telematics.NotExecuted, outcome == telematics.HasFailed, overridden && made.State != telematics.Succeeded:
		return w.commandFailed(ctx, made.Err())
	case w.t.Wish == rental.GiveUp: // whatever came since: undo looks whether it is driven
		w.t.Fail(rental.StartCancelled(), rental.StepUndo, now)
		return w.next(ctx)
	case made.State == telematics.Succeeded:
		return w.book(ctx, made.Completed)
	case w.t.Wish == rental.RepeatOrder && !stoodStill && !w.isUnknownForLong(now):
		w.t.Wish = ""
		return w.orderAgain(ctx, now)
	}
	w.t.Wish = ""
	if reported, err := w.reportsDone(ctx, made); err != nil {
		return w.wait(ctx, w.Waits.Broken)
	} else if reported {
		return w.book(ctx, now)
	}
	return w.awaitResult(ctx, made.Err())
}

// orderAgain orders the command once more. A start is undone instead if its booking may not begin
// any more.
func (w *worker) orderAgain(ctx context.Context, now time.Time) (bool, error) {
	if w.t.Kind == rental.StartRental {
		d, err := w.Store.BookingDetails(ctx, w.t.Booking)
		if err != nil {
			return false, err
		}
		if err := d.MayBegin(now); err != nil {
			w.t.Fail(asError(err), rental.StepUndo, now)
			return w.next(ctx)
		}
	}
	w.t.OrderAgain(now)
	return w.next(ctx)
}

// newestResult returns the command of the newest attempt, or that of the one before, if that one
// was executed.
func (w *worker) newestResult(ctx context.Context) (telematics.Command, error) {
	if w.t.Earlier != telematics.NoCommand {
		if earlier, err := w.Cars.Command(ctx, w.t.Earlier); err != nil || earlier.State == telematics.Succeeded {
			return earlier, err
		}
	}
	return w.Cars.Command(ctx, w.t.Command)
}

// awaitResult waits for the result of a command that the vehicle has not confirmed, that another
// process waits for, or that could not be ordered, unless it has waited for long enough.
func (w *worker) awaitResult(ctx context.Context, because *telematics.Error) (bool, error) {
	now := w.Now()
	switch w.t.Kind {
	case rental.StartRental:
		if w.isUnknownForLong(now) {
			w.t.Fail(because, rental.StepUndo, now)
			return w.next(ctx)
		}
	case rental.EndRental:
		if w.t.Step == rental.StepConfirm && now.Sub(w.t.Since) > w.Waits.EndUnknown {
			w.t.OrderAgain(now)
			return w.next(ctx)
		}
	default:
		if w.isUnknownForLong(now) {
			return w.fail(ctx, because)
		}
	}
	return w.wait(ctx, w.Waits.Confirm)
}

// isUnknownForLong reports whether a start, pause or resumption has waited for its vehicle for as
// long as it may.
func (w *worker) isUnknownForLong(now time.Time) bool {
	since := w.t.UnknownSince
	if since.IsZero() {
		since = w.t.Since
	}
	if w.t.Kind == rental.StartRental {
		return now.Sub(since) > w.Waits.StartUnknown
	}
	return now.Sub(since) > w.Waits.PauseUnknown
}

// reportsDone reports whether the vehicle has reported, since a command of unknown result was sent,
// that it is as the command wants it, and was not before. The end of a rental needs the command's
// result: no report says that a vehicle is immobilised.
func (w *worker) reportsDone(ctx context.Context, made telematics.Command) (bool, error) {
	wanted := w.t.Kind == rental.PauseRental
	if w.t.Kind == rental.EndRental || w.t.LockedBefore != nil && *w.t.LockedBefore == wanted {
		return false, nil
	}
	twin, err := w.Cars.Twin(ctx, w.t.Vehicle)
	if err != nil {
		return false, err
	}
	locked := twin.Snapshot.Flag(telematics.IsLocked)
	sent := made.SentAt
	return locked != nil && !sent.IsZero() && twin.Snapshot.Of(telematics.IsLocked).At.After(sent) && *locked == wanted, nil
}

// undo locks a vehicle that may have opened. It is ordered until the vehicle has done it.
func (w *worker) undo(ctx context.Context) (bool, error) {
	if w.t.Override == "" {
		if driven, err := w.isDriven(ctx); err != nil {
			return false, err
		} else if driven { // the client has the vehicle: the rental has begun
			w.t.Failure = nil
			return w.book(ctx, cmp.Or(w.t.UnknownSince, w.t.Since)) // else since its vehicle failed
		}
	}
	_, failure, err := w.order(ctx)
	switch now := w.Now(); {
	case err == nil && failure == nil:
		w.t.Undone()
		w.t.Enter(rental.StepRefund, now)
	case w.t.Override != "" && !w.isBusy(failure): // staff vouch for the vehicle
		w.t.Overrule(cmp.Or(failure, asError(err)), rental.StepRefund, now)
	case err != nil:
		return w.wait(ctx, w.Waits.Confirm)
	default:
		w.t.OrderAgain(now)
		return w.wait(ctx, w.retryAfter(failure))
	}
	return w.next(ctx)
}

// isDriven reports whether the vehicle has reported its ignition on since the start was requested,
// and not before, or its odometer says that it was driven since.
func (w *worker) isDriven(ctx context.Context) (bool, error) {
	twin, err := w.Cars.Twin(ctx, w.t.Vehicle)
	if err != nil {
		return false, err
	}
	if w.t.IsDriven(w.Now(), odometer(twin.Snapshot)) {
		return true, nil
	}
	return !w.t.OnBefore && isOn(twin.Snapshot) && twin.Snapshot.Of(telematics.Ignition).At.After(w.t.Requested), nil
}

func isOn(s telematics.Snapshot) bool {
	ignition := s.Text(telematics.Ignition)
	return ignition != nil && *ignition == "on"
}
