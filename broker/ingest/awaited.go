package ingest

import (
	"context"
	"motorpool/telematics/delivery"
	"time"
)

// Awaited is a report that came with an answer, until every instance sees it.
type Awaited struct {
	in          *Ingest
	observation delivery.Observation
	began       time.Time
	shared      <-chan bool     // whether every instance sees it; nil: it is stored by the queue
	stored      <-chan struct{} // closed once it is stored, or cannot be; nil: the queue does not have it
}

// Await begins to store a report, for which a caller waits.
func (in *Ingest) Await(o delivery.Observation) *Awaited {
	a := &Awaited{in: in, observation: o, began: time.Now(), shared: in.Twins.ObserveAndFlush(o)}
	if a.shared == nil {
		if a.stored = in.prompt.begin(o); a.stored == nil {
			in.metrics.dropped(observationKind, queueFull).Inc()
		}
	}
	return a
}

// Wait returns when every instance sees the report, when that takes too long, or when the context
// ends; nil: there is no report.
func (a *Awaited) Wait(ctx context.Context) {
	if a == nil {
		return
	}
	if a.shared != nil {
		if a.isShared(ctx) {
			return
		}
		a.observation.Missed = true
		a.stored = a.in.prompt.begin(a.observation) // where the queue is full, it may still be shared
	}
	if a.stored == nil {
		return
	}
	timeout := time.NewTimer(max(reportTimeout-time.Since(a.began), bringTimeout))
	defer timeout.Stop()
	select {
	case <-a.stored:
	case <-timeout.C:
	case <-ctx.Done():
	}
}

func (a *Awaited) isShared(ctx context.Context) bool {
	timeout := time.NewTimer(bringTimeout - time.Since(a.began))
	defer timeout.Stop()
	select {
	case shared := <-a.shared:
		return shared
	case <-timeout.C:
	case <-ctx.Done():
	}
	select { // a settlement may have taken longer than that
	case shared := <-a.shared:
		return shared
	default:
		return false
	}
}
