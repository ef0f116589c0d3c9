package broker

import (
	"context"
	"errors"
	"slices"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Presence takes a message from a unit's presence topic. It hands over and returns [LAW-8]. It reports false for one that did not fit.
func (b *Broker) Presence(m telematics.Message) bool {
	b.metrics.presence.Inc()
	if len(m.Payload) == 0 {
		return true // the memory of a removed unit was cleared
	}
	if len(m.Payload) > telematics.MaxMessage {
		b.metrics.dropped.presenceTooLarge.Inc()
		return true
	}
	now := b.now()
	presence, err := m.Dialect.DecodePresence(m, now)
	if err != nil {
		b.metrics.dropped.presenceMalformed.Inc()
		b.Logger.Debug("presence not readable", "unit", m.Unit, "err", err)
		return true
	}
	said := observed{Observation: delivery.Observation{Unit: m.Unit, Protocol: m.Dialect.Protocol(), At: now, Presence: &presence, Retained: m.Retained}}
	if !m.Retained { // the MQTT broker sends a retained one once for each subscription
		var ok bool
		if said.from, ok = b.intakes.presence.admit(m.Unit, 0, now); !ok {
			b.limit(m.Unit, presenceKind)
			return true
		}
	}
	if b.contact.offer(said) {
		return true
	}
	said.from.handled(0)
	b.metrics.dropped.presenceQueueFull.Inc()
	return false
}

// ingest writes observations down, as many at a time as have come.
type ingest struct {
	write   func([]observed) error
	lose    func(n int, why error)
	timeout time.Duration
	queue   chan observed
	patient bool // what the record could not take is written again: nobody says it twice
}

type observed struct {
	delivery.Observation
	done chan<- struct{} // nil: nobody waits
	from *sender         // nil: it counts against no unit
}

func (b *Broker) newIngest(patient bool) *ingest {
	return &ingest{write: b.writeObserved, lose: b.lose, timeout: b.StepTimeout, queue: make(chan observed, b.QueueSize), patient: patient}
}

// add queues an observation, and reports false where the queue is full.
func (in *ingest) add(o delivery.Observation) bool { return in.offer(observed{Observation: o}) }

func (in *ingest) offer(o observed) bool {
	select {
	case in.queue <- o:
		return true
	default:
		return false
	}
}

// begin queues an observation. The channel is closed when it was written, or could not be; nil: the queue is full.
func (in *ingest) begin(o delivery.Observation) <-chan struct{} {
	done := make(chan struct{})
	select {
	case in.queue <- observed{Observation: o, done: done}:
		return done
	default:
		return nil
	}
}

// run writes what is queued, until the context ends.
func (in *ingest) run(ctx context.Context) {
	handle(ctx, in.queue, in.timeout, func(batch []observed) {
		for _, o := range batch {
			o.from.handled(0)
		}
		err := in.write(batch)
		for in.patient && isAway(err) && ctx.Err() == nil {
			select {
			case <-time.After(writeRetry):
			case <-ctx.Done():
			}
			err = in.write(batch)
		}
		if err != nil {
			in.lose(len(batch), err)
		}
	})
}

// isAway reports whether the error of a port says that its server is away, so that the same
// may go through later.
func isAway(err error) bool {
	var server interface{ Unavailable() bool }
	return errors.As(err, &server) && server.Unavailable()
}

func (b *Broker) writeObserved(batch []observed) error {
	observations := make([]delivery.Observation, len(batch))
	for i, o := range batch {
		observations[i] = o.Observation
	}
	_, err := b.observe(observations)
	for _, o := range batch {
		if o.done != nil {
			close(o.done)
		}
	}
	return err
}

// observe is given its own time: a stop must not lose what was acknowledged. It returns how
// many of the observations are of vehicles, and were taken in.
func (b *Broker) observe(observations []delivery.Observation) (merged int, err error) {
	if len(observations) == 0 {
		return 0, nil
	}
	ctx, cancel := b.step(context.Background())
	defer cancel()
	seen, err := b.Twins.Observe(ctx, observations)
	b.metrics.presenceFormer.Add(float64(seen.Ghosts))
	b.metrics.presenceOutdated.Add(float64(seen.Overtaken))
	b.events.changed(seen.Changes)
	strange, foreign := b.unknownUnits.note(seen.Unknown, observations), countOf(seen.Foreign, observations)
	b.metrics.unknownUnits.Add(float64(strange))
	b.metrics.protocolMismatches.Add(float64(foreign))
	if err != nil {
		return 0, err
	}
	return max(0, len(observations)-strange-foreign), nil // a counter panics below zero, and a store may call a unit both
}

func (b *Broker) lose(n int, why error) {
	b.metrics.dropped.observationsNotStored.Add(float64(n))
	b.Logger.Warn("observations lost", "count", n, "err", why)
}

// countOf returns how many observations are of some units.
func countOf(units []telematics.Unit, observations []delivery.Observation) int {
	n := 0
	for _, o := range observations {
		if slices.Contains(units, o.Unit) {
			n++
		}
	}
	return n
}

// handle hands on what is queued, as many at a time as have come, until the context ends,
// and then what is left, for no longer than one step may take.
func handle[T any](ctx context.Context, queue <-chan T, timeout time.Duration, handle func([]T)) {
	for {
		select {
		case first := <-queue:
			handle(gather(queue, first))
			continue
		case <-ctx.Done():
		}
		break
	}
	for end := time.Now().Add(timeout); time.Now().Before(end); {
		select {
		case first := <-queue:
			handle(gather(queue, first))
		default:
			return
		}
	}
}

func gather[T any](queue <-chan T, first T) []T {
	batch := []T{first}
	for len(batch) < maxBatch {
		select {
		case next := <-queue:
			batch = append(batch, next)
		default:
			return batch
		}
	}
	return batch
}
