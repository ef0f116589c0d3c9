package rental

import (
	"context"
	"time"
)

// refund carries a refund on. It cannot be prepared, so the record says that it may have happened before the processor
// is called, and the next worker looks for the refund first.
//
// Its name is the same until the processor answers with an internal error, which it would repeat for ever. Then
// no request with that key is in flight, and a refund that is not found a moment later has not happened.
func (h *chargeWorker) refund(ctx context.Context) (Result, error) {
	switch {
	case h.job.State == Failed:
		return h.unchanged(), nil // another refund may have taken its place
	case h.job.Payment == "":
		return h.refundFailed("payment_not_known"), nil
	case h.job.Intent != "":
		return h.lookAtRefund(ctx)
	case h.job.State == Unknown:
		return h.findRefund(ctx)
	}
	if err := h.write(ctx, h.about()); err != nil {
		return Result{}, err
	}
	return h.giveBack(ctx)
}

func (h *chargeWorker) lookAtRefund(ctx context.Context) (Result, error) {
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
func (h *chargeWorker) findRefund(ctx context.Context) (Result, error) {
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
	if err := h.write(ctx, h.as(Unknown)); err != nil { // as it is, to be sure that the charge is still ours
		return Result{}, err
	}
	return h.giveBack(ctx)
}

// giveBack asks for the refund.
func (h *chargeWorker) giveBack(ctx context.Context) (Result, error) {
	h.acted = true
	bounded, cancel := h.call(ctx)
	made, err := h.Processor.Refund(bounded, h.firstKey(h.job.Attempts-1), RefundRequest{
		Charge: h.job.ID, Intent: h.job.Payment, Amount: h.job.Amount, Currency: h.job.Currency,
	})
	cancel()
	if err == nil {
		return h.judgeRefund(made), nil
	}
	switch h.why("refund", err).Kind {
	case Refused, NotKnown, CardRefused:
		return h.refundFailed(notAccepted), nil
	case WrongState:
		return h.findRefund(ctx)
	case BrokenThere:
		r := h.again()
		r.Asked = true // the next try needs another name
		return r, nil
	default:
		return h.again(), nil
	}
}

func (h *chargeWorker) judgeRefund(made Refund) Result {
	h.job.Intent = made.ID
	switch made.Status {
	case RefundSucceeded:
		if h.job.State == Paid {
			return h.unchanged()
		}
		r := h.settled(Paid)
		r.Intent, r.Settled = made.ID, made.Amount
		return h.withActivity(r)
	case RefundFailed:
		r := h.refundFailed(made.Why)
		r.Intent = made.ID
		return r
	default:
		if h.job.State == Paid {
			return h.unchanged()
		}
		r := h.undecided()
		r.Intent = made.ID
		return r
	}
}

func (h *chargeWorker) refundFailed(why string) Result {
	r := h.as(Failed)
	r.DeclineCode, r.Settled, r.PaidAt = why, 0, time.Time{}
	return h.withActivity(r)
}
