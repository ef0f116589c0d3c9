package charging

import (
	"context"
	"time"

	"motorpool/rental"
)

// refund carries a refund on. It cannot be prepared, so the record says that it may have happened before the processor
// is called, and the next worker looks for the refund first.
//
// Its name is the same until the processor answers with an internal error, which it would repeat for ever. Then
// no request with that key is in flight, and a refund that is not found a moment later has not happened.
func (h *worker) refund(ctx context.Context) (rental.Result, error) {
	switch {
	case h.job.State == rental.Failed:
		return h.unchanged(), nil // another refund may have taken its place
	case h.job.Payment == "":
		return h.refundFailed("payment_not_known"), nil
	case h.job.Intent != "":
		return h.lookAtRefund(ctx)
	case h.job.State == rental.Unknown:
		return h.findRefund(ctx)
	}
	if err := h.write(ctx, h.about()); err != nil {
		return rental.Result{}, err
	}
	return h.giveBack(ctx)
}

func (h *worker) lookAtRefund(ctx context.Context) (rental.Result, error) {
	bounded, cancel := h.call(ctx)
	made, err := h.Processor.RefundByID(bounded, h.job.Intent)
	cancel()
	if err != nil {
		_ = h.why("look", err)
		return h.again(), nil
	}
	return h.judgeRefund(made), nil
}

// findRefund looks whether the refund was made, and makes it where it was not.
func (h *worker) findRefund(ctx context.Context) (rental.Result, error) {
	bounded, cancel := h.call(ctx)
	made, found, err := h.Processor.RefundOf(bounded, h.job.Payment, h.job.ID)
	cancel()
	switch {
	case err != nil:
		_ = h.why("look", err)
		return h.again(), nil
	case found:
		return h.judgeRefund(made), nil
	case h.acted:
		return h.refundFailed(notAccepted), nil // it was refused just now, and is not there
	}
	if err := h.write(ctx, h.as(rental.Unknown)); err != nil { // as it is, to be sure that the charge is still ours
		return rental.Result{}, err
	}
	return h.giveBack(ctx)
}

// giveBack asks for the refund.
func (h *worker) giveBack(ctx context.Context) (rental.Result, error) {
	h.acted = true
	bounded, cancel := h.call(ctx)
	made, err := h.Processor.Refund(bounded, h.firstKey(h.job.Attempts-1), rental.RefundRequest{
		Charge: h.job.ID, Intent: h.job.Payment, Amount: h.job.Amount, Currency: h.job.Currency,
	})
	cancel()
	if err == nil {
		return h.judgeRefund(made), nil
	}
	switch h.why("refund", err).Kind {
	case rental.Refused, rental.NotKnown, rental.CardRefused:
		return h.refundFailed(notAccepted), nil
	case rental.WrongState:
		return h.findRefund(ctx)
	case rental.BrokenThere:
		r := h.again()
		r.Asked = true // the next try needs another name
		return r, nil
	default:
		return h.again(), nil
	}
}

func (h *worker) judgeRefund(made rental.Refund) rental.Result {
	h.job.Intent = made.ID
	switch made.Status {
	case rental.RefundSucceeded:
		if h.job.State == rental.Paid {
			return h.unchanged()
		}
		r := h.settled(rental.Paid)
		r.Intent, r.Settled = made.ID, made.Amount
		return h.withActivity(r)
	case rental.RefundFailed:
		r := h.refundFailed(made.Why)
		r.Intent = made.ID
		return r
	default:
		if h.job.State == rental.Paid {
			return h.unchanged()
		}
		r := h.undecided()
		r.Intent = made.ID
		return r
	}
}

func (h *worker) refundFailed(why string) rental.Result {
	r := h.as(rental.Failed)
	r.DeclineCode, r.Settled, r.PaidAt = why, 0, time.Time{}
	return h.withActivity(r)
}
