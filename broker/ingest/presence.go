package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Presence queues a message from a unit's presence topic. It does not block [LAW-8]. It reports
// false where the queue is full.
func (in *Ingest) Presence(m telematics.Message) bool {
	in.metrics.presence.Inc()
	if len(m.Payload) == 0 {
		return true // the retained presence of a removed unit was cleared
	}
	if len(m.Payload) > telematics.MaxMessage {
		in.Reject(m.Unit, Presence, telematics.TooLarge)
		return true
	}
	now := in.Now()
	presence, err := m.DecodePresence(now)
	if errors.Is(err, telematics.ErrOtherKind) {
		return true
	}
	if err != nil {
		in.Reject(m.Unit, Presence, telematics.Malformed)
		in.Logger.Debug("presence not readable", "unit", m.Unit, "err", err)
		return true
	}
	presence.After, _ = in.latest.Get(m.Unit)
	o := observed{
		Observation: delivery.Observation{Unit: m.Unit, Protocol: m.Dialect.Protocol(), At: now, Presence: &presence, Retained: m.Retained},
	}
	if !m.Retained { // the MQTT broker sends a retained one once for each subscription
		var ok bool
		if o.from, ok = in.allowances.presence.Admit(m.Unit, 0, now); !ok {
			in.Limit(m.Unit, Presence)
			return true
		}
	}
	if in.contact.add(o) {
		in.noteLatest(m.Unit, presence.Mark(now, m.Retained), m.Retained)
		return true
	}
	o.from.Handled(0)
	in.metrics.dropped(Presence, queueFull).Inc()
	return false
}

// noteLatest notes a presence message as the latest of its unit that this instance has received. A
// retained one may be older than a live one before it, if the unit has moved to another MQTT broker
// meanwhile.
func (in *Ingest) noteLatest(unit telematics.Unit, mark telematics.PresenceMark, retained bool) {
	switch {
	case mark == telematics.PresenceMark{}:
	case retained:
		in.latest.ContainsOrAdd(unit, mark)
	default:
		in.latest.Add(unit, mark)
	}
}

// SignOfLife queues an observation without report or presence: the unit has sent something. It does
// not block.
func (in *Ingest) SignOfLife(o delivery.Observation) {
	if !in.contact.add(observed{Observation: o}) {
		in.metrics.dropped(Presence, queueFull).Inc()
	}
}

// queue holds observations until they are stored, in batches.
type queue struct {
	*Ingest
	waiting chan observed
	aside   aside
}

type observed struct {
	delivery.Observation
	from *Sender // nil: it counts against no unit
}

// add reports false where the queue is full.
func (q *queue) add(o observed) bool {
	select {
	case q.waiting <- o:
		return true
	default:
		return false
	}
}

// run stores queued observations, until the context ends, and then the rest. It retries while the
// store is unavailable, and those whose units are locked apart from the others: units do not send
// these again.
func (q *queue) run(ctx context.Context) error {
	var locked sync.WaitGroup
	defer locked.Wait()
	InBatches(ctx, q.waiting, 0, q.StepTimeout, func(batch []observed) {
		observations := make([]delivery.Observation, len(batch))
		for i, o := range batch {
			o.from.Handled(0)
			observations[i] = o.Observation
		}
		_ = q.Guard.Do("store presence", func() {
			observations, lost := q.aside.follow(observations)
			units, more := q.aside.begin(q.store(ctx, observations))
			if lost += more; lost > 0 {
				q.lose(lost, errLocked)
			}
			if len(units) > 0 {
				locked.Go(func() {
					_ = q.Guard.Do("store presence of locked units", func() { q.storeLocked(ctx, units) })
				})
			}
		})
	})
	return nil
}

// store returns the observations whose units are locked.
func (q *queue) store(ctx context.Context, observations []delivery.Observation) (locked []delivery.Observation) {
	_, locked, err := q.observe(observations)
	for isUnavailable(err) && ctx.Err() == nil {
		guard.Pause(ctx, writeRetry)
		_, locked, err = q.observe(observations)
	}
	if err != nil {
		q.lose(len(observations)-len(locked), err)
	}
	return locked
}

// isUnavailable reports whether an error means that the server of a port is unavailable, so that
// the same call may succeed later.
func isUnavailable(err error) bool {
	var server interface{ Unavailable() bool }
	return errors.As(err, &server) && server.Unavailable()
}

// observe merges observations, and returns how many of them are of vehicles, and the presence
// that must be observed again because the unit is locked. It has no context of a caller: a
// shutdown must not lose messages that were acknowledged.
func (in *Ingest) observe(observations []delivery.Observation) (merged int, locked []delivery.Observation, err error) {
	if len(observations) == 0 {
		return 0, nil, nil
	}
	ctx, cancel := in.step(context.Background())
	defer cancel()
	seen, err := in.Twins.Observe(ctx, observations)
	for _, o := range observations {
		if o.Presence != nil && slices.Contains(seen.Locked, o.Unit) {
			locked = append(locked, o)
		}
	}
	merged, err = in.count(seen, err, observations)
	return max(0, merged-len(locked)), locked, err
}

// count counts and publishes the results of observations. It returns how many of them are of
// vehicles, and were merged.
func (in *Ingest) count(seen delivery.Seen, err error, observations []delivery.Observation) (int, error) {
	in.metrics.presenceFormer.Add(float64(seen.Ghosts))
	in.metrics.presenceOutdated.Add(float64(seen.Overtaken))
	in.Changed(seen.Changes)
	for _, unit := range seen.Reconnected {
		in.health.reconnect(unit, in.Now())
	}
	unknown, foreign := in.noteUnknown(seen.Unknown, observations), in.countForeign(seen.Foreign, observations)
	in.metrics.unknownUnits.Add(float64(unknown))
	in.metrics.protocolMismatches.Add(float64(foreign))
	if err != nil {
		return 0, err
	}
	// A counter panics below zero, and a store may call a unit both.
	return max(0, len(observations)-unknown-foreign), nil
}

// Await begins to store a report that came with an answer, and returns a function that waits
// until every instance sees it, until that takes too long, or until the context ends.
func (in *Ingest) Await(o delivery.Observation) (wait func(context.Context)) {
	began, stored := time.Now(), in.Twins.Report(o)
	return func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, max(reportTimeout-time.Since(began), reportTimeout/2))
		defer cancel()
		seen, err := stored(ctx)
		if _, err = in.count(seen, err, []delivery.Observation{o}); err != nil && ctx.Err() == nil {
			in.lose(1, err)
		}
	}
}

func (in *Ingest) lose(n int, why error) {
	in.metrics.dropped(observationKind, notStored).Add(float64(n))
	in.Logger.Warn("observations lost", "count", n, "err", why)
}

// countForeign counts the observations of units that speak another protocol than their records
// name.
func (in *Ingest) countForeign(units []telematics.Unit, observations []delivery.Observation) int {
	n := 0
	for _, o := range observations {
		if slices.Contains(units, o.Unit) {
			in.health.reject(o.Unit, telematics.ForeignProtocol, o.At)
			n++
		}
	}
	return n
}
