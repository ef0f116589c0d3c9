package broker

import (
	"context"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// reports are telemetry that waits to be read, in queues of which each serves some of the
// units: those of one unit are read one after another, and a busy one delays only its
// neighbours.
type reports struct {
	queues []*reportQueue
	seed   maphash.Seed
}

// heard is a report as it came from the MQTT client.
type heard struct {
	telematics.Message
	at   time.Time
	from *sender
}

type reportQueue struct {
	waiting chan heard
	bytes   atomic.Int64
	room    int64 // bytes, at most
}

func newReports(size int) *reports {
	r := &reports{queues: make([]*reportQueue, 2*runtime.GOMAXPROCS(0)), seed: maphash.MakeSeed()}
	for i := range r.queues {
		r.queues[i] = &reportQueue{waiting: make(chan heard, size), room: max(telematics.MaxMessage, maxQueued/int64(len(r.queues)))}
	}
	return r
}

// add queues a message, and reports false where there is no room.
func (r *reports) add(h heard) bool {
	queue := r.queues[maphash.String(r.seed, string(h.Unit))%uint64(len(r.queues))]
	size := int64(len(h.Payload))
	if queue.bytes.Add(size) > queue.room {
		queue.bytes.Add(-size)
		return false
	}
	select {
	case queue.waiting <- h:
		return true
	default:
		queue.bytes.Add(-size)
		return false
	}
}

// Report takes a message from a unit's telemetry topic. It hands over and returns [LAW-8].
func (b *Broker) Report(m telematics.Message) {
	b.metrics.reports.Inc()
	switch {
	case m.Retained:
		b.metrics.dropped.reportsRetained.Inc()
	case len(m.Payload) > telematics.MaxMessage: // before it takes room in the queue
		b.metrics.dropped.reportsTooLarge.Inc()
	default:
		now := b.now()
		from, ok := b.intakes.reports.admit(m.Unit, len(m.Payload), now)
		switch {
		case !ok:
			b.limit(m.Unit, reportKind)
		case !b.reports.add(heard{Message: m, at: now, from: from}):
			from.handled(len(m.Payload))
			b.metrics.dropped.reportsQueueFull.Inc()
		}
	}
}

// readReports reads what is queued, until the context ends.
func (b *Broker) readReports(ctx context.Context) {
	var readers sync.WaitGroup
	for _, queue := range b.reports.queues {
		readers.Go(func() {
			handle(ctx, queue.waiting, b.StepTimeout, func(batch []heard) {
				for _, h := range batch {
					queue.bytes.Add(-int64(len(h.Payload)))
					h.from.handled(len(h.Payload))
				}
				b.takeReports(batch)
			})
		})
	}
	readers.Wait()
}

// takeReports reads a batch of reports and writes down what they say.
func (b *Broker) takeReports(batch []heard) {
	observations := make([]delivery.Observation, 0, len(batch))
	for _, h := range batch {
		if report, ok := b.readReport(h); ok {
			b.recall(h.Unit, report.Answers, h.at)
			observations = append(observations, delivery.Observation{Unit: h.Unit, Protocol: h.Dialect.Protocol(), At: h.at, Report: &report})
		}
	}
	merged, err := b.observe(observations)
	if err != nil {
		b.lose(len(observations), err)
	}
	b.metrics.reportsMerged.Add(float64(merged))
}

func (b *Broker) readReport(h heard) (telematics.Report, bool) {
	report, dropped, err := h.Dialect.DecodeReport(h.Message, h.at)
	if err != nil {
		b.metrics.dropped.reportsMalformed.Inc()
		b.Logger.Debug("report not readable", "unit", h.Unit, "err", err)
		return telematics.Report{}, false
	}
	if len(dropped) > 0 {
		b.metrics.dropFields(dropped)
		b.Logger.Debug("parts of a report dropped", "unit", h.Unit, "field", dropped[0].Field, "reason", dropped[0].Reason, "count", len(dropped))
	}
	return report, true
}
