package rental

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"motorpool/telematics"
)

// errLost means that the job is not the worker's any more: it must do nothing about it.
var errLost = errors.New("another worker has the charge")

// chargeWorker carries out one charge.
type chargeWorker struct {
	*Collector
	job Job
	log *slog.Logger
	// acted is set once this worker has requested a change from the processor: from then on it only queries, so that
	// an answer that it did not understand leads to no second request.
	acted bool
}

// processCharge does what is due for a charge, and records the result.
func (c *Collector) processCharge(ctx context.Context, job Job) {
	c.metrics.attempts.Inc()
	h := &chargeWorker{Collector: c, job: job, log: c.Logger.With("charge", job.ID, "booking", job.Booking, "kind", string(job.Kind))}
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

func (h *chargeWorker) carryOut(ctx context.Context) (Result, error) {
	if h.job.Kind == RefundCharge {
		return h.refund(ctx)
	}
	return h.payment(ctx)
}

// write writes down what is about to be done [MON-2], and takes it over into the job.
func (h *chargeWorker) write(ctx context.Context, r Result) error {
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

func (h *chargeWorker) settle(ctx context.Context, r Result) error {
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
func (h *chargeWorker) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, h.Timeout)
}

// as is the charge as it is, in a state, with nothing to be done.
func (h *chargeWorker) as(s ChargeState) Result {
	return Result{State: s, Settled: h.job.Settled, DeclineCode: h.job.DeclineCode, PaidAt: h.job.PaidAt}
}

// unchanged is the charge as it was, on the schedule that it had.
func (h *chargeWorker) unchanged() Result {
	r := h.as(h.job.State)
	if h.job.Look {
		r.NextAttempt = h.job.NextAttempt
	}
	return r
}

// about is what is about to be done: a worker that finds the charge so must query first [MON-3].
func (h *chargeWorker) about() Result {
	r := h.as(Unknown)
	r.Asked = true
	return r
}

// again is a try that brought no news: another follows soon.
func (h *chargeWorker) again() Result {
	soon := h.Now().Add(againAfter(h.job.Tries + 1))
	if h.job.Look && !h.acted {
		r := h.unchanged()
		r.LookAt, r.Again = soon, true
		return r
	}
	r := h.as(h.job.State)
	r.NextAttempt, r.Again = soon, true
	if h.job.State == Unknown && h.acted && h.job.Tries == 0 {
		r.Line = h.activity(r, telematics.MayHave, ProcessorUnavailable)
	}
	return r
}

// settled is what became of a charge. What it was refused for is over.
func (h *chargeWorker) settled(s ChargeState) Result {
	r := h.as(s)
	r.DeclineCode = ""
	switch s {
	case Paid, Captured:
		r.PaidAt = h.Now()
	case Released:
		r.Settled = 0
	}
	return r
}

// withActivity adds the audit log entry of a result.
func (h *chargeWorker) withActivity(r Result) Result {
	switch r.State {
	case Paid, Authorized, Captured, Released:
		r.Line = h.activity(r, telematics.Executed, "")
	case Declined, RequiresAction:
		r.Line = h.activity(r, telematics.HasFailed, CardDeclined)
	case Failed:
		code := CardDeclined
		if h.job.Kind == RefundCharge {
			code = RefundFailure
		}
		r.Line = h.activity(r, telematics.HasFailed, code)
	}
	return r
}

func (h *chargeWorker) activity(r Result, o telematics.Outcome, code telematics.Code) *telematics.Activity {
	amount := h.job.Amount
	if r.State == Captured {
		amount = r.Settled
	}
	details := map[string]any{
		"amount": h.job.Currency.Format(amount), "currency": string(h.job.Currency), "number": h.job.Number, "state": string(r.State),
	}
	if r.DeclineCode != "" {
		details["decline_code"] = r.DeclineCode
	}
	return &telematics.Activity{
		At: h.Now(), Actor: System(), Agency: h.job.Agency, Vehicle: h.job.Vehicle, Booking: int64(h.job.Booking),
		Action: ChargeActivity(h.job.Kind), Details: details, Outcome: o, Code: code,
	}
}

// why returns what is known after a call failed, and tells of it. An error that is not the processor's says nothing.
func (h *chargeWorker) why(doing string, err error) *ProcessorError {
	var failure *ProcessorError
	if !errors.As(err, &failure) {
		failure = &ProcessorError{Kind: MayHaveHappened, Cause: err}
	}
	log := h.log.With("doing", doing, "intent", h.job.Intent, "failure", string(failure.Kind), "err", failure)
	switch failure.Kind {
	case MayHaveHappened, BrokenThere:
		h.metrics.failures.outcomeUnknown.Inc()
		log.Warn("payment processor left the result unknown")
	case NotDone:
		h.metrics.failures.busy.Inc()
		log.Warn("payment processor is busy")
	case NotOurs:
		h.metrics.failures.refused.Inc()
		log.Error("payment processor rejected the api key")
	case NotKnown, Refused:
		h.metrics.failures.refused.Inc()
		log.Error("payment processor rejected the request as invalid")
	case WrongState, CardRefused: // what became of the charge says it
	}
	return failure
}

// key names the request that is about to be made: the attempt is written down before.
func (h *chargeWorker) key(doing string) string {
	return fmt.Sprintf("charge-%s-%s-%d", h.job.ID, doing, h.job.Attempts)
}

// firstKey names what is made once. Under that name nothing more may come of it, once the processor has answered with
// an internal error: the next one has a number.
func (h *chargeWorker) firstKey(used int) string {
	if used == 0 {
		return fmt.Sprintf("charge-%s", h.job.ID)
	}
	return fmt.Sprintf("charge-%s-%d", h.job.ID, used)
}
