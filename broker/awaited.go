package broker

import (
	"context"
	"time"

	"motorpool/telematics/delivery"
)

// awaited is a report that came with an answer, on its way to where everybody sees it.
type awaited struct {
	*Broker
	sign  delivery.Observation
	began time.Time
	there <-chan bool     // every instance sees it; nil: it goes the slower way
	done  <-chan struct{} // it is written, or cannot be; nil: it does not go the slower way, or cannot
}

// report sends a report on its way.
func (b *Broker) report(sign delivery.Observation) *awaited {
	r := &awaited{Broker: b, sign: sign, began: time.Now(), there: b.Twins.Bring(sign)}
	if r.there == nil {
		if r.done = b.prompt.begin(sign); r.done == nil {
			b.metrics.dropped.observationsQueueFull.Inc()
		}
	}
	return r
}

// await returns when everybody sees the report, or patience is at its end, or the context; nil: there is none.
func (r *awaited) await(ctx context.Context) {
	if r == nil {
		return
	}
	if r.there != nil {
		if r.isThere(ctx) {
			return
		}
		r.sign.Missed = true
		r.done = r.prompt.begin(r.sign) // where there is no room, it is still on its way
	}
	if r.done == nil {
		return
	}
	patience := time.NewTimer(max(reportTimeout-time.Since(r.began), bringTimeout))
	defer patience.Stop()
	select {
	case <-r.done:
	case <-patience.C:
	case <-ctx.Done():
	}
}

// isThere waits for as long as bringing may take.
func (r *awaited) isThere(ctx context.Context) bool {
	patience := time.NewTimer(bringTimeout - time.Since(r.began))
	defer patience.Stop()
	select {
	case there := <-r.there:
		return there
	case <-patience.C:
	case <-ctx.Done():
	}
	select { // a settlement may have taken longer than that
	case there := <-r.there:
		return there
	default:
		return false
	}
}
