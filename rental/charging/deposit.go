package charging

import (
	"context"

	"motorpool/rental"
)

// judgeDeposit goes on from how the deposit is at the processor, towards what is wanted of it.
func (h *worker) judgeDeposit(ctx context.Context, in rental.Intent) (rental.Result, error) {
	switch in.Status {
	case rental.IntentSucceeded:
		r := h.settled(rental.Captured)
		r.Settled, r.Seen = in.Amount, in.Attempt
		return h.withActivity(r), nil
	case rental.IntentCanceled:
		r := h.settled(rental.Released)
		if h.job.Goal != rental.Release {
			r.DeclineCode = holdExpired
		}
		return h.withActivity(r), nil
	case rental.IntentHeld:
		return h.judgeHold(ctx, in)
	case rental.IntentPrepared, rental.IntentAction:
		if h.job.Goal == rental.Hold {
			return h.judgeAttempt(ctx, in)
		}
		return h.release(ctx) // a payment that is given up holds nothing afterwards, whatever is still on its way to it
	default:
		return h.undecided(), nil
	}
}

// judgeHold goes on with money that is held.
func (h *worker) judgeHold(ctx context.Context, in rental.Intent) (rental.Result, error) {
	wasHeld := h.job.State == rental.Authorized
	h.job.Settled = in.Amount
	switch {
	case h.job.Goal == rental.Hold:
		r := h.settled(rental.Authorized)
		r.Seen = in.Attempt
		if wasHeld {
			return r, nil
		}
		return h.withActivity(r), nil
	case h.job.Goal == rental.Capture && h.job.CaptureAmount > 0:
		return h.capture(ctx)
	default:
		return h.release(ctx)
	}
}

// capture takes a part of what is held. The rest is free.
func (h *worker) capture(ctx context.Context) (rental.Result, error) {
	return h.act(ctx, "capture", func(ctx context.Context, key string) (rental.Intent, error) {
		return h.Processor.Capture(ctx, key, h.job.Intent, h.job.CaptureAmount, h.job.Currency)
	})
}

// release gives the deposit up.
func (h *worker) release(ctx context.Context) (rental.Result, error) {
	return h.act(ctx, "cancel", func(ctx context.Context, key string) (rental.Intent, error) {
		return h.Processor.Cancel(ctx, key, h.job.Intent)
	})
}

// act asks for something that can happen to a payment once, whatever it is called: each time the key is a new one,
// after a look.
func (h *worker) act(ctx context.Context, doing string, do func(context.Context, string) (rental.Intent, error)) (rental.Result, error) {
	if h.acted {
		return h.again(), nil
	}
	if err := h.write(ctx, h.about()); err != nil {
		return rental.Result{}, err
	}
	h.acted = true
	bounded, cancel := h.call(ctx)
	in, err := do(bounded, h.key(doing))
	cancel()
	if err == nil {
		return h.judge(ctx, in)
	}
	switch h.why(doing, err).Kind {
	case rental.WrongState, rental.Refused, rental.CardRefused:
		return h.look(ctx)
	default:
		return h.again(), nil
	}
}
