package charging

import (
	"context"

	"motorpool/rental"
)

// continueDeposit takes the next step from the state of the deposit at the processor to its goal.
func (w *worker) continueDeposit(ctx context.Context, in rental.Intent) (rental.Result, error) {
	switch in.Status {
	case rental.IntentSucceeded:
		r := w.settled(rental.Captured)
		r.Settled, r.AttemptID = in.Amount, in.Attempt
		return w.withActivity(r), nil
	case rental.IntentCanceled:
		r := w.settled(rental.Released)
		switch {
		case w.job.DeclineCode == rental.CodeTooSmall:
			r.DeclineCode = rental.CodeTooSmall
		case w.job.Goal != rental.Release:
			r.DeclineCode = rental.CodeExpired
		}
		return w.withActivity(r), nil
	case rental.IntentHeld:
		return w.continueHold(ctx, in)
	case rental.IntentPrepared, rental.IntentAction:
		if w.job.Goal == rental.Hold {
			return w.continueAttempt(ctx, in)
		}
		// A cancelled payment holds nothing, even if an earlier request arrives later.
		return w.release(ctx)
	default:
		return w.undecided(), nil
	}
}

// continueHold takes the next step of a deposit that is held.
func (w *worker) continueHold(ctx context.Context, in rental.Intent) (rental.Result, error) {
	wasHeld := w.job.State == rental.Authorized
	w.job.Settled = in.Amount
	switch {
	case w.job.Goal == rental.Hold:
		r := w.settled(rental.Authorized)
		r.AttemptID = in.Attempt
		if wasHeld {
			return r, nil
		}
		return w.withActivity(r), nil
	case w.job.Goal == rental.Capture && w.job.CaptureAmount > 0:
		return w.capture(ctx)
	default:
		return w.release(ctx)
	}
}

const capturing = "capture"

// capture takes CaptureAmount of the held amount. The processor releases the rest. If the amount is
// less than the processor takes, all is released.
func (w *worker) capture(ctx context.Context) (rental.Result, error) {
	return w.callOnce(ctx, capturing, func(ctx context.Context, key string) (rental.Intent, error) {
		return w.Processor.Capture(ctx, key, w.job.Intent, w.job.CaptureAmount, w.job.Currency)
	})
}

// release cancels the hold.
func (w *worker) release(ctx context.Context) (rental.Result, error) {
	return w.callOnce(ctx, "cancel", func(ctx context.Context, key string) (rental.Intent, error) {
		return w.Processor.Cancel(ctx, key, w.job.Intent)
	})
}

// callOnce captures or cancels a payment, which is possible only once. Each attempt has a new
// idempotency key: the payment's state was queried before.
func (w *worker) callOnce(
	ctx context.Context, doing string, do func(context.Context, string) (rental.Intent, error),
) (rental.Result, error) {
	if w.acted {
		return w.retryLater(), nil
	}
	if err := w.write(ctx, w.intended()); err != nil {
		return rental.Result{}, err
	}
	w.acted = true
	bounded, cancel := w.call(ctx)
	in, err := do(bounded, w.key(doing))
	cancel()
	if err == nil {
		return w.continueFrom(ctx, in)
	}
	switch kind := w.failure(doing, err).Kind; {
	case kind == rental.TooSmall && doing == capturing:
		w.acted, w.job.DeclineCode = false, rental.CodeTooSmall
		return w.release(ctx)
	case kind == rental.WrongState, kind == rental.Refused, kind == rental.CardRefused:
		return w.query(ctx)
	default:
		return w.retryLater(), nil
	}
}
