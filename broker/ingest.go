package broker

import (
	"context"
	"log/slog"
	"time"

	"motorpool/telematics"
)

// maxBatch bounds the observations that are written in one step.
const maxBatch = 512

// Report takes a message from a unit's telemetry topic. It hands over and returns [LAW-8].
func (b *Broker) Report(unit telematics.Unit, payload []byte, retained bool) {
	b.Counts.add(reportsTaken)
	if retained {
		b.Counts.add(reportsRetained)
		return
	}
	now := time.Now().UTC()
	report, dropped, err := telematics.DecodeReport(payload, now)
	if err != nil {
		b.Counts.add(reportsMalformed)
		b.Logger.Debug("report not readable", "unit", unit, "err", err)
		return
	}
	if len(dropped) > 0 {
		b.Counts.addN(fieldsDropped, len(dropped))
		b.Logger.Debug("parts of a report dropped", "unit", unit, "field", dropped[0].Field, "reason", dropped[0].Reason, "count", len(dropped))
	}
	b.recall(unit, report.Answers, now)
	if !b.reports.add(telematics.Observation{Unit: unit, At: now, Report: &report}) {
		b.Counts.add(reportsDropped)
	}
}

// Presence takes a message from a unit's presence topic. It hands over and returns [LAW-8].
func (b *Broker) Presence(unit telematics.Unit, payload []byte, retained bool) {
	b.Counts.add(presenceTaken)
	if len(payload) == 0 {
		return // the memory of a removed unit was cleared
	}
	now := time.Now().UTC()
	presence, err := telematics.DecodePresence(payload, now)
	if err != nil {
		b.Counts.add(presenceMalformed)
		b.Logger.Debug("presence not readable", "unit", unit, "err", err)
		return
	}
	if !b.contact.add(telematics.Observation{Unit: unit, At: now, Presence: &presence, Retained: retained}) {
		b.Counts.add(presenceDropped)
	}
}

// ingest writes observations down, as many at a time as have come.
type ingest struct {
	twins   Twins
	timeout time.Duration
	counts  *Counts
	logger  *slog.Logger
	queue   chan observed
}

type observed struct {
	telematics.Observation
	done chan<- struct{} // nil: nobody waits
}

func newIngest(c Config, counts *Counts) *ingest {
	return &ingest{
		twins: c.Twins, timeout: c.StepTimeout, counts: counts, logger: c.Logger,
		queue: make(chan observed, c.QueueSize),
	}
}

// add queues an observation, and reports false where the queue is full.
func (in *ingest) add(o telematics.Observation) bool {
	select {
	case in.queue <- observed{Observation: o}:
		return true
	default:
		return false
	}
}

// wait queues an observation and returns when it was written, or could not be.
func (in *ingest) wait(ctx context.Context, o telematics.Observation) {
	done := make(chan struct{})
	select {
	case in.queue <- observed{Observation: o, done: done}:
	case <-ctx.Done():
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// run writes what is queued, until the context ends.
func (in *ingest) run(ctx context.Context) {
	for {
		select {
		case first := <-in.queue:
			in.write(in.gather(first))
		case <-ctx.Done():
			in.drain()
			return
		}
	}
}

// drain writes what is still queued, for no longer than one step may take.
func (in *ingest) drain() {
	for end := time.Now().Add(in.timeout); time.Now().Before(end); {
		select {
		case first := <-in.queue:
			in.write(in.gather(first))
		default:
			return
		}
	}
}

func (in *ingest) gather(first observed) []observed {
	batch := []observed{first}
	for len(batch) < maxBatch {
		select {
		case next := <-in.queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}

// write is given its own time: a stop must not lose what was acknowledged.
func (in *ingest) write(batch []observed) {
	observations := make([]telematics.Observation, len(batch))
	for i, o := range batch {
		observations[i] = o.Observation
	}
	ctx, cancel := context.WithTimeout(context.Background(), in.timeout)
	defer cancel()
	seen, err := in.twins.Observe(ctx, observations)
	if err != nil {
		in.counts.addN(observationsLost, len(batch))
		in.logger.Warn("observations lost", "count", len(batch), "err", err)
	} else {
		in.counts.addN(reportsWritten, reportsAmong(batch))
	}
	in.counts.addN(unitsUnknown, len(seen.Unknown))
	for _, o := range batch {
		if o.done != nil {
			close(o.done)
		}
	}
}

func reportsAmong(batch []observed) int {
	n := 0
	for _, o := range batch {
		if o.Report != nil {
			n++
		}
	}
	return n
}
