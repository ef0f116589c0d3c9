package charging

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"motorpool/rental"
	"motorpool/telematics"
)

// errLeaseLost means that the worker has lost its lease, and must do nothing more about the charge.
var errLeaseLost = errors.New("another worker has the charge")

// worker executes one charge.
type worker struct {
	*Collector
	job rental.Job
	log *slog.Logger
	// acted is set when this worker has requested a change from the processor. From then on it only
	// queries, so that an unexpected answer leads to no second request.
	acted bool
}

// processCharge executes the next steps of a due charge, and stores the result.
func (c *Collector) processCharge(ctx context.Context, job rental.Job) {
	c.metrics.attempts.Inc()
	w := &worker{Collector: c, job: job, log: c.Logger.With("charge", job.ID, "booking", job.Booking, "kind", string(job.Kind))}
	r, err := w.process(ctx)
	if err == nil {
		err = w.settle(ctx, r)
	}
	if err == nil && r.RefusedCard != "" { // the notice that it was detached may be lost
		if err := c.refreshCard(ctx, r.RefusedCard); err != nil {
			w.log.Warn("card that the payment processor refused not read", "err", err)
		}
	}
	switch {
	case errors.Is(err, errLeaseLost):
		c.metrics.withoutResult.claimedElsewhere.Inc()
		w.log.Info("charge changed meanwhile, skipped")
	case err != nil:
		c.metrics.withoutResult.notStored.Inc()
		w.log.Warn("charge not recorded; retried when its lease has expired", "err", err)
	}
}

func (w *worker) process(ctx context.Context) (rental.Result, error) {
	if w.job.Kind == rental.RefundCharge {
		return w.refund(ctx)
	}
	return w.payment(ctx)
}

// write stores what is about to be done [MON-2], and updates the job accordingly.
func (w *worker) write(ctx context.Context, r rental.Result) error {
	ok, err := w.Ledger.WriteCharge(ctx, w.job, r)
	if err != nil {
		return fmt.Errorf("store a charge before it is executed: %w", err)
	}
	if !ok {
		return errLeaseLost
	}
	w.job.State = r.State
	if r.Intent != "" {
		w.job.Intent = r.Intent
	}
	if r.CountAttempt {
		w.job.Attempts++
	}
	return nil
}

func (w *worker) settle(ctx context.Context, r rental.Result) error {
	if wait, ok := queryAfter[r.State]; ok && r.QueryAt.IsZero() {
		r.QueryAt = w.Now().Add(wait)
	}
	ok, err := w.Ledger.SettleCharge(ctx, w.job, r)
	if err != nil {
		return fmt.Errorf("settle a charge: %w", err)
	}
	if !ok {
		return errLeaseLost
	}
	if r.NoChange {
		w.metrics.withoutResult.noChange.Inc()
	}
	if r.State != w.job.State && w.Settled != nil {
		w.Settled(w.job.Booking)
	}
	if r.Activity != nil {
		w.metrics.settled(w.job.Kind, r.State)
		w.log.Info("charge settled", "state", string(r.State), "code", r.DeclineCode)
	}
	return nil
}

// call bounds one call of the processor.
func (w *worker) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, w.Timeout)
}

// inState returns the charge's current values as a result, with another state and no schedule.
func (w *worker) inState(s rental.ChargeState) rental.Result {
	return rental.Result{State: s, Settled: w.job.Settled, DeclineCode: w.job.DeclineCode, PaidAt: w.job.PaidAt}
}

// unchanged returns the charge's current values as a result; after a mere query it keeps its
// schedule.
func (w *worker) unchanged() rental.Result {
	r := w.inState(w.job.State)
	if w.job.QueryOnly {
		r.NextAttempt = w.job.NextAttempt
	}
	return r
}

// intended returns the result to store before a request: Unknown, so the next worker must query
// first [MON-3].
func (w *worker) intended() rental.Result {
	r := w.inState(rental.Unknown)
	r.CountAttempt = true
	return r
}

// retryLater returns the result of a try that changed nothing; the next follows after a back-off.
func (w *worker) retryLater() rental.Result {
	soon := w.Now().Add(backoffAfter(w.job.Tries + 1))
	if w.job.QueryOnly && !w.acted {
		r := w.unchanged()
		r.QueryAt, r.NoChange = soon, true
		return r
	}
	r := w.inState(w.job.State)
	r.NextAttempt, r.NoChange = soon, true
	if w.job.State == rental.Unknown && w.acted && w.job.Tries == 0 {
		r.Activity = w.activity(r, telematics.MayHave, rental.ProcessorUnavailable)
	}
	return r
}

// settled returns the result of a success, without the decline code of an earlier refusal.
func (w *worker) settled(s rental.ChargeState) rental.Result {
	r := w.inState(s)
	r.DeclineCode = ""
	switch s {
	case rental.Paid, rental.Captured:
		r.PaidAt = w.Now()
	case rental.Released:
		r.Settled = 0
	}
	return r
}

// withActivity adds the audit log entry of a result.
func (w *worker) withActivity(r rental.Result) rental.Result {
	switch r.State {
	case rental.Paid, rental.Authorized, rental.Captured, rental.Released, rental.Waived:
		r.Activity = w.activity(r, telematics.Executed, "")
	case rental.Declined, rental.RequiresAction:
		r.Activity = w.activity(r, telematics.HasFailed, rental.CardDeclined)
	case rental.Failed:
		code := rental.CardDeclined
		if w.job.Kind == rental.RefundCharge {
			code = rental.RefundFailure
		}
		r.Activity = w.activity(r, telematics.HasFailed, code)
	}
	return r
}

func (w *worker) activity(r rental.Result, o telematics.Outcome, code telematics.Code) *telematics.Activity {
	amount := w.job.Amount
	if r.State == rental.Captured {
		amount = r.Settled
	}
	details := map[string]any{
		"amount": w.job.Currency.Format(amount), "currency": string(w.job.Currency), "number": w.job.Number, "state": string(r.State),
	}
	if r.DeclineCode != "" {
		details["decline_code"] = r.DeclineCode
	}
	if r.State == rental.Released && w.job.Added > 0 {
		details["added_minutes_taken_back"] = w.job.Added.Minutes()
	}
	return &telematics.Activity{
		At: w.Now(), Actor: rental.System(), Agency: w.job.Agency, Vehicle: w.job.Vehicle, Booking: int64(w.job.Booking),
		Action: rental.ChargeActivity(w.job.Kind), Details: details, Outcome: o, Code: code,
	}
}

// failure returns a failed call's error as a ProcessorError, and logs and counts it. Any other
// error leaves open whether the call had an effect.
func (w *worker) failure(doing string, err error) *rental.ProcessorError {
	var failure *rental.ProcessorError
	if !errors.As(err, &failure) {
		failure = &rental.ProcessorError{Kind: rental.MayHaveHappened, Cause: err}
	}
	log := w.log.With("doing", doing, "intent", w.job.Intent, "failure", string(failure.Kind), "err", failure)
	switch failure.Kind {
	case rental.MayHaveHappened, rental.BrokenThere:
		w.metrics.failures.outcomeUnknown.Inc()
		log.Warn("payment processor left the result unknown")
	case rental.NotDone:
		w.metrics.failures.busy.Inc()
		log.Warn("payment processor is busy")
	case rental.NotOurs:
		w.metrics.failures.refused.Inc()
		log.Error("payment processor rejected the api key")
	case rental.TooSmall:
		log.Info("payment processor takes no amount that small")
	case rental.NotKnown, rental.Refused:
		if w.job.Kind != rental.RefundCharge { // visible in the result, and says nothing of cards
			w.metrics.failures.refused.Inc()
		}
		log.Error("payment processor rejected the request as invalid")
	case rental.WrongState, rental.CardRefused: // visible in the result of the charge
	}
	return failure
}

// key returns the idempotency key of the next change of a payment, which can be made only once,
// whatever the key. The key is this worker's: after a commit was lost the number of the attempt
// comes again, and under its key the processor would repeat the result of an old attempt.
func (w *worker) key(doing string) string {
	return fmt.Sprintf("charge-%s-%s-%d-%s", w.job.PaymentID(), doing, w.job.Attempts, w.job.Lease)
}

// firstKey returns the idempotency key for creating an object once. After an internal error of the
// processor that key cannot succeed any more, so the next one has a number.
func (w *worker) firstKey(used int) string {
	if used == 0 {
		return fmt.Sprintf("charge-%s", w.job.PaymentID())
	}
	return fmt.Sprintf("charge-%s-%d", w.job.PaymentID(), used)
}
