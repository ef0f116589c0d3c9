package broker

import (
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// retransmissionTimeout returns how long after its latest publication a command is published again.
func (b *Broker) retransmissionTimeout(w *waiter) time.Duration {
	attempts := w.progress().Attempts
	if attempts == 0 {
		return publishRetry
	}
	return retransmitAfter(firstRetransmit(b.roundTrip.estimate(), w.command.Budget()), attempts, w.received, rand.Float64())
}

// firstRetransmit returns the wait before the first retransmission: twice the estimated round trip,
// since most answers come before that. But a message may be lost, and its retransmission, too:
// where the wait is above the minimum, the second retransmission still leaves one round trip before
// the end of the budget.
func firstRetransmit(roundTrip, budget time.Duration) time.Duration {
	const untilSecond = (1 + retransmitGrowth) * (1 + retransmitJitter) // first waits
	return max(minRetransmit, min(2*roundTrip, time.Duration(float64(budget-roundTrip)/untilSecond)))
}

// retransmitAfter returns how long after the attempt'th publication, counted from 1,
// the same message is published again. Jitter is in [0, 1).
func retransmitAfter(first time.Duration, attempt int, received bool, jitter float64) time.Duration {
	wait := float64(first)
	for range attempt - 1 {
		wait *= retransmitGrowth
	}
	if received {
		wait *= receivedFactor
	}
	return time.Duration(wait * (1 + retransmitJitter*(2*jitter-1)))
}

// roundTrip estimates the median time from a command's publication until the first answer of its
// unit is handled here, queues of this process included: a retransmission makes a slow process
// slower. An answer that takes longer than the estimate raises it by a step, a faster one lowers
// it: answers to retransmissions raise it no further than slow ones while they are less than half.
type roundTrip struct{ median atomic.Int64 }

func (r *roundTrip) estimate() time.Duration {
	return max(minRoundTrip, time.Duration(r.median.Load()))
}

// observe adds a round trip to the estimate. The loss of one of two concurrent steps does no harm.
func (r *roundTrip) observe(took time.Duration) {
	median := float64(r.estimate())
	if took = min(took, maxRoundTrip); took > time.Duration(median) {
		median = min(median*roundTripStep, float64(took))
	} else {
		median = max(median/roundTripStep, float64(took))
	}
	r.median.Store(int64(median))
}
