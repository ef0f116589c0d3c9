package charging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"motorpool/rental"
	"motorpool/telematics"
)

// errLost means that the job is not the worker's any more: it must do nothing about it.
var errLost = errors.New("another worker has the charge")

// worker carries out one charge.
type worker struct {
	*Collector
	job rental.Job
	log *slog.Logger
	// acted is set once this worker has requested a change from the processor: from then on it only queries, so that
	// an answer that it did not understand leads to no second request.
	acted bool
}

// processCharge does what is due for a charge, and records the result.
func (c *Collector) processCharge(ctx context.Context, job rental.Job) {
	c.metrics.attempts.Inc()
	h := &worker{Collector: c, job: job, log: c.Logger.With("charge", job.ID, "booking", job.Booking, "kind", string(job.Kind))}
	r, err := h.carryOut(ctx)
	if err == nil {
		err = h.settle(ctx, r)
	}
	switch {
	case errors.Is(err, errLost):
		c.metrics.withoutResult.claimedElsewhere.Inc()
		h.log.Info("charge changed meanwhile, skipped")
	case err != nil:
		c.metrics.withoutResult.notStored.Inc()
		h.log.Warn("charge not recorded; retried when its lease has expired", "err", err)
	}
}

func (h *worker) carryOut(ctx context.Context) (rental.Result, error) {
	if h.job.Kind == rental.RefundCharge {
		return h.refund(ctx)
	}
	return h.payment(ctx)
}

// write writes down what is about to be done [MON-2], and takes it over into the job.
func (h *worker) write(ctx context.Context, r rental.Result) error {
	ok, err := h.Ledger.WriteCharge(ctx, h.job, r)
	if err != nil {
		return fmt.Errorf("write a charge down before it is carried out: %w", err)
	}
	if !ok {
		return errLost
	}
	h.job.State = r.State
	if r.Intent != "" {
		h.job.Intent = r.Intent
	}
	if r.Asked {
		h.job.Attempts++
	}
	return nil
}

func (h *worker) settle(ctx context.Context, r rental.Result) error {
	if wait, ok := untold[r.State]; ok && r.LookAt.IsZero() {
		r.LookAt = h.Now().Add(wait)
	}
	ok, err := h.Ledger.SettleCharge(ctx, h.job, r)
	if err != nil {
		return fmt.Errorf("settle a charge: %w", err)
	}
	if !ok {
		return errLost
	}
	if r.Again {
		h.metrics.withoutResult.noChange.Inc()
	}
	if r.Line != nil {
		h.metrics.settled(h.job.Kind, r.State)
		h.log.Info("charge settled", "state", string(r.State), "code", r.DeclineCode)
	}
	return nil
}

// call bounds one call of the processor.
func (h *worker) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, h.Timeout)
}

// as is the charge as it is, in a state, with nothing to be done.
func (h *worker) as(s rental.ChargeState) rental.Result {
	return rental.Result{State: s, Settled: h.job.Settled, DeclineCode: h.job.DeclineCode, PaidAt: h.job.PaidAt}
}

// unchanged is the charge as it was, on the schedule that it had.
func (h *worker) unchanged() rental.Result {
	r := h.as(h.job.State)
	if h.job.Look {
		r.NextAttempt = h.job.NextAttempt
	}
	return r
}

// about is what is about to be done: a worker that finds the charge so must query first [MON-3].
func (h *worker) about() rental.Result {
	r := h.as(rental.Unknown)
	r.Asked = true
	return r
}

// again is a try that brought no news: another follows soon.
func (h *worker) again() rental.Result {
	soon := h.Now().Add(againAfter(h.job.Tries + 1))
	if h.job.Look && !h.acted {
		r := h.unchanged()
		r.LookAt, r.Again = soon, true
		return r
	}
	r := h.as(h.job.State)
	r.NextAttempt, r.Again = soon, true
	if h.job.State == rental.Unknown && h.acted && h.job.Tries == 0 {
		r.Line = h.activity(r, telematics.MayHave, rental.ProcessorUnavailable)
	}
	return r
}

// settled is what became of a charge. What it was refused for is over.
func (h *worker) settled(s rental.ChargeState) rental.Result {
	r := h.as(s)
	r.DeclineCode = ""
	switch s {
	case rental.Paid, rental.Captured:
		r.PaidAt = h.Now()
	case rental.Released:
		r.Settled = 0
	}
	return r
}

// withActivity adds the audit log entry of a result.
func (h *worker) withActivity(r rental.Result) rental.Result {
	switch r.State {
	case rental.Paid, rental.Authorized, rental.Captured, rental.Released:
		r.Line = h.activity(r, telematics.Executed, "")
	case rental.Declined, rental.RequiresAction:
		r.Line = h.activity(r, telematics.HasFailed, rental.CardDeclined)
	case rental.Failed:
		code := rental.CardDeclined
		if h.job.Kind == rental.RefundCharge {
			code = rental.RefundFailure
		}
		r.Line = h.activity(r, telematics.HasFailed, code)
	}
	return r
}

func (h *worker) activity(r rental.Result, o telematics.Outcome, code telematics.Code) *telematics.Activity {
	amount := h.job.Amount
	if r.State == rental.Captured {
		amount = r.Settled
	}
	details := map[string]any{
		"amount": h.job.Currency.Format(amount), "currency": string(h.job.Currency), "number": h.job.Number, "state": string(r.State),
	}
	if r.DeclineCode != "" {
		details["decline_code"] = r.DeclineCode
	}
	return &telematics.Activity{
		At: h.Now(), Actor: rental.System(), Agency: h.job.Agency, Vehicle: h.job.Vehicle, Booking: int64(h.job.Booking),
		Action: rental.ChargeActivity(h.job.Kind), Details: details, Outcome: o, Code: code,
	}
}

// why returns what is known after a call failed, and tells of it. An error that is not the processor's says nothing.
func (h *worker) why(doing string, err error) *rental.ProcessorError {
	var failure *rental.ProcessorError
	if !errors.As(err, &failure) {
		failure = &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: err}
	}
	log := h.log.With("doing", doing, "intent", h.job.Intent, "failure", string(failure.Kind), "err", failure)
	switch failure.Kind {
	case rental.MayHaveHappened, rental.BrokenThere:
		h.metrics.failures.outcomeUnknown.Inc()
		log.Warn("payment processor left the result unknown")
	case rental.NotDone:
		h.metrics.failures.busy.Inc()
		log.Warn("payment processor is busy")
	case rental.NotOurs:
		h.metrics.failures.refused.Inc()
		log.Error("payment processor rejected the api key")
	case rental.NotKnown, rental.Refused:
		h.metrics.failures.refused.Inc()
		log.Error("payment processor rejected the request as invalid")
	case rental.WrongState, rental.CardRefused: // what became of the charge says it
	}
	return failure
}

// key names the request that is about to be made: the attempt is written down before.
func (h *worker) key(doing string) string {
	return fmt.Sprintf("charge-%s-%s-%d", h.job.ID, doing, h.job.Attempts)
}

// firstKey names what is made once. Under that name nothing more may come of it, once the processor has answered with
// an internal error: the next one has a number.
func (h *worker) firstKey(used int) string {
	if used == 0 {
		return fmt.Sprintf("charge-%s", h.job.ID)
	}
	return fmt.Sprintf("charge-%s-%d", h.job.ID, used)
}
