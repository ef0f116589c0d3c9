package broker

import (
	"math/rand/v2"
	"time"
)

const (
	leastResend = 2 * time.Second        // a unit is asked again no sooner, but for jitter
	resendGrow  = 1.5                    // each wait is longer than the one before
	resendSpan  = 0.2                    // part of a wait that jitter may take or add
	patience    = 2                      // a unit that said received is asked less often
	airRetry    = 250 * time.Millisecond // until the MQTT client has taken the message once
	expiryGuard = 500 * time.Millisecond // before the expiry nothing is published any more
)

// askAgain returns how long after its latest publication a command is published again.
func (b *Broker) askAgain(w *waiter) time.Duration {
	attempts := w.progress().Attempts
	if attempts == 0 {
		return airRetry
	}
	return resendAfter(firstResend(b.usual.wait(), w.command.Budget()), attempts, w.patient, rand.Float64())
}

// firstResend returns the first wait, where units usually say their first word about a command after the given time: asked
// sooner than after twice that, most have nothing to say that is not on its way. But a message may be lost, and then the repetition: where more
// than the least wait is asked for, the second repetition leaves as much time for an answer as is usual, at the latest it can come.
func firstResend(usual, budget time.Duration) time.Duration {
	const untilSecond = (1 + resendGrow) * (1 + resendSpan) // first waits
	return max(leastResend, min(2*usual, time.Duration(float64(budget-usual)/untilSecond)))
}

// resendAfter returns how long after the attempt'th publication, counted from 1,
// the same message is published again. Jitter is in [0, 1).
func resendAfter(first time.Duration, attempt int, received bool, jitter float64) time.Duration {
	wait := float64(first)
	for range attempt - 1 {
		wait *= resendGrow
	}
	if received {
		wait *= patience
	}
	return time.Duration(wait * (1 + resendSpan*(2*jitter-1)))
}
