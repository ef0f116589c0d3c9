package ingest

import (
	"context"
	"errors"
	"hash/maphash"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// reports are telemetry messages that wait to be read, in queues that each serve some of the
// units: messages of one unit are read in order, and a busy unit delays only the units of its
// queue.
type reports struct {
	queues []*reportQueue
	seed   maphash.Seed
}

// received is a message from the MQTT client, not decoded yet.
type received struct {
	telematics.Message
	at   time.Time
	from *Sender
}

type reportQueue struct {
	waiting  chan *received
	bytes    atomic.Int64
	maxBytes int64
}

func newReports(size int) *reports {
	r := &reports{queues: make([]*reportQueue, 2*runtime.GOMAXPROCS(0)), seed: maphash.MakeSeed()}
	for i := range r.queues {
		r.queues[i] = &reportQueue{
			waiting: make(chan *received, size), maxBytes: max(telematics.MaxMessage, maxQueued/int64(len(r.queues))),
		}
	}
	return r
}

// add queues a message, and reports false where its queue is full.
func (r *reports) add(m *received) bool {
	queue := r.queues[maphash.String(r.seed, string(m.Unit))%uint64(len(r.queues))]
	size := int64(len(m.Payload))
	if queue.bytes.Add(size) <= queue.maxBytes {
		select {
		case queue.waiting <- m:
			return true
		default:
		}
	}
	queue.bytes.Add(-size)
	return false
}

func (r *reports) waiting() int {
	n := 0
	for _, queue := range r.queues {
		n += len(queue.waiting)
	}
	return n
}

// Report queues a message from a unit's telemetry topic. It does not block [LAW-8].
func (in *Ingest) Report(m telematics.Message) {
	in.metrics.reports.Inc()
	switch {
	case m.Retained:
		if _, ok := m.Dialect.(telematics.ReportRetainer); !ok {
			in.Reject(m.Unit, Report, telematics.KeptByBroker)
		}
	case len(m.Payload) > telematics.MaxMessage: // before it takes room in the queue
		in.Reject(m.Unit, Report, telematics.TooLarge)
	default:
		now := in.Now()
		from, ok := in.allowances.reports.Admit(m.Unit, len(m.Payload), now)
		switch {
		case !ok:
			in.Limit(m.Unit, Report)
		case !in.reports.add(&received{Message: m, at: now, from: from}):
			from.Handled(len(m.Payload))
			in.metrics.dropped(Report, queueFull).Inc()
		}
	}
}

// readReports decodes and stores queued reports, until the context ends, and then the rest.
func (in *Ingest) readReports(ctx context.Context) error {
	var readers sync.WaitGroup
	for _, queue := range in.reports.queues {
		readers.Go(func() {
			_ = in.Guard.Keep(ctx, "read queued reports", func(ctx context.Context) error {
				InBatches(ctx, queue.waiting, reportDebounce, in.StepTimeout, func(batch []*received) {
					for _, m := range batch {
						queue.bytes.Add(-int64(len(m.Payload)))
						m.from.Handled(len(m.Payload))
					}
					_ = in.Guard.Do("store reports", func() { in.storeReports(batch) })
				})
				return nil
			})
		})
	}
	readers.Wait()
	return nil
}

func (in *Ingest) storeReports(batch []*received) {
	observations := make([]delivery.Observation, 0, len(batch))
	for _, m := range batch {
		var report telematics.Report
		ok := false
		if err := in.Guard.Do("decode report", func() { report, ok = in.decodeReport(m) }); err == nil && ok {
			in.Repeated(m.Unit, report, m.at)
			observations = append(
				observations,
				delivery.Observation{Unit: m.Unit, Protocol: m.Dialect.Protocol(), At: m.at, Report: &report},
			)
		}
	}
	merged, _, err := in.observe(observations) // reports alone lock no unit
	if err != nil {
		in.lose(len(observations), err)
	}
	in.metrics.reportsMerged.Add(float64(merged))
}

func (in *Ingest) decodeReport(m *received) (telematics.Report, bool) {
	report, dropped, err := m.DecodeReport(m.at)
	if errors.Is(err, telematics.ErrOtherKind) {
		return telematics.Report{}, false
	}
	if err != nil {
		in.Reject(m.Unit, Report, telematics.Malformed)
		in.Logger.Debug("report not readable", "unit", m.Unit, "err", err)
		return telematics.Report{}, false
	}
	// A redelivered message may be from the connection before.
	if said, ok := saidAt(report, dropped); ok && !m.Redelivered {
		in.health.readClock(m.Unit, said.Sub(m.at), m.at)
	}
	report.Bound(m.at)
	if !report.Undated && report.At.Equal(report.Arrived) {
		report.At = m.from.order(report.Arrived)
		report.Arrived = report.At
	}
	if len(dropped) > 0 {
		in.DropFields(m.Unit, dropped)
		in.Logger.Debug(
			"parts of a report dropped", "unit", m.Unit, "field", dropped[0].Field, "reason", dropped[0].Reason,
			"count", len(dropped),
		)
	}
	return report, true
}
