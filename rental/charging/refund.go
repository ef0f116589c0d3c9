package charging

import (
	"context"
	"time"

	"motorpool/rental"
)

// refund takes the next steps of a refund. It cannot be prepared, so it is stored as Unknown
// before the processor is called, and the next worker searches for the refund first.
//
// Its idempotency key stays the same until the processor answers with an internal error, which it
// would always repeat for that key. Then no request with that key is in flight, and a refund that
// is not found afterwards has not happened.
func (w *worker) refund(ctx context.Context) (rental.Result, error) {
	switch {
	case w.job.State == rental.Failed:
		return w.unchanged(), nil // another refund may have taken its place
	case w.job.Payment == "":
		return w.refundFailed("payment_not_known"), nil
	case w.job.Intent != "":
		return w.queryRefund(ctx)
	case w.job.State == rental.Unknown:
		return w.findRefund(ctx)
	}
	// The record may have lost it.
	switch made, found, err := w.refundOf(ctx); {
	case err != nil:
		return w.retryLater(), nil
	case found:
		w.metrics.recovered.Inc()
		w.log.Warn("refund found at the processor that was not on record", "refund", made.ID)
		return w.settleRefund(made), nil
	}
	if err := w.write(ctx, w.intended()); err != nil {
		return rental.Result{}, err
	}
	return w.createRefund(ctx)
}

// refundOf searches the processor for the refund.
func (w *worker) refundOf(ctx context.Context) (made rental.Refund, found bool, err error) {
	bounded, cancel := w.call(ctx)
	defer cancel()
	if made, found, err = w.Processor.RefundOf(bounded, w.job.Payment, w.job.PaymentID()); err != nil {
		return rental.Refund{}, false, w.failure("search", err)
	}
	return made, found, nil
}

func (w *worker) queryRefund(ctx context.Context) (rental.Result, error) {
	bounded, cancel := w.call(ctx)
	made, err := w.Processor.RefundByID(bounded, w.job.Intent)
	cancel()
	if err != nil {
		_ = w.failure("look", err)
		return w.retryLater(), nil
	}
	return w.settleRefund(made), nil
}

// findRefund searches for the refund at the processor, and creates it if there is none.
func (w *worker) findRefund(ctx context.Context) (rental.Result, error) {
	made, found, err := w.refundOf(ctx)
	switch {
	case err != nil:
		return w.retryLater(), nil
	case found:
		return w.settleRefund(made), nil
	case w.acted:
		return w.refundFailed(rental.CodeRefused), nil // it was refused just now, and is not there
	}
	// Written unchanged, to make sure that this worker still has the lease.
	if err := w.write(ctx, w.inState(rental.Unknown)); err != nil {
		return rental.Result{}, err
	}
	return w.createRefund(ctx)
}

// createRefund requests the refund from the processor.
func (w *worker) createRefund(ctx context.Context) (rental.Result, error) {
	w.acted = true
	bounded, cancel := w.call(ctx)
	made, err := w.Processor.Refund(bounded, w.firstKey(w.job.Attempts-1), rental.RefundRequest{
		Refund: w.job.PaymentID(), Intent: w.job.Payment, Amount: w.job.Amount, Currency: w.job.Currency,
	})
	cancel()
	if err == nil {
		return w.settleRefund(made), nil
	}
	switch w.failure("refund", err).Kind {
	case rental.Refused, rental.NotKnown, rental.CardRefused:
		return w.refundFailed(rental.CodeRefused), nil
	case rental.TooSmall: // nothing is to be paid back
		r := w.settled(rental.Paid)
		r.DeclineCode = rental.CodeTooSmall
		return w.withActivity(r), nil
	case rental.WrongState:
		return w.findRefund(ctx)
	case rental.BrokenThere:
		r := w.retryLater()
		r.CountAttempt = true // the next try needs another key
		return r, nil
	default:
		return w.retryLater(), nil
	}
}

// settleRefund returns what the processor's refund means for the charge. A refund that is not on
// record yet is queried again when it is: the notice of its failure may have come before,
// when its id was unknown.
func (w *worker) settleRefund(made rental.Refund) rental.Result {
	onRecord := w.job.Intent != ""
	w.job.Intent = made.ID
	switch made.Status {
	case rental.RefundSucceeded:
		if w.job.State == rental.Paid {
			return w.unchanged()
		}
		r := w.settled(rental.Paid)
		r.Intent, r.Settled = made.ID, made.Amount
		if !onRecord {
			r.QueryAt = w.Now()
		}
		return w.withActivity(r)
	case rental.RefundFailed:
		r := w.refundFailed(made.Why)
		r.Intent = made.ID
		return r
	default:
		if w.job.State == rental.Paid {
			return w.unchanged()
		}
		r := w.undecided()
		r.Intent = made.ID
		return r
	}
}

func (w *worker) refundFailed(why string) rental.Result {
	r := w.inState(rental.Failed)
	r.DeclineCode, r.Settled, r.PaidAt = why, 0, time.Time{}
	return w.withActivity(r)
}
