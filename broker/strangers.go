package broker

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"motorpool/telematics"
)

// noteEvery is between two times that strangers are written down: one that sends a hundred
// messages a second costs as much as one that sends one.
const noteEvery = 5 * time.Second

// strangers are the units without a vehicle that were heard since they were last written down.
type strangers struct {
	metrics *metrics

	mu    sync.Mutex
	heard map[telematics.Unit]telematics.UnknownUnit // at most telematics.MaxUnknownUnits
}

// note takes those of the observations that came from unknown units, and returns how many
// they are. What the MQTT broker says of a unit, a retained presence or a last will, is not
// the unit's voice.
func (s *strangers) note(unknown []telematics.Unit, observations []telematics.Observation) int {
	if len(unknown) == 0 {
		return 0
	}
	strange := make(map[telematics.Unit]bool, len(unknown))
	for _, unit := range unknown {
		strange[unit] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range observations {
		if !strange[o.Unit] {
			continue
		}
		n++
		if o.Retained || o.Presence != nil && o.Presence.Status == telematics.Offline {
			continue
		}
		s.add(telematics.UnknownUnit{Unit: o.Unit, FirstSeen: o.At, LastSeen: o.At, Messages: 1})
	}
	return n
}

// add is called with the mutex held.
func (s *strangers) add(met telematics.UnknownUnit) {
	known, ok := s.heard[met.Unit]
	if !ok && len(s.heard) == telematics.MaxUnknownUnits {
		s.metrics.dropped.unknownUnitsQueueFull.Inc()
		return
	}
	s.heard[met.Unit] = known.Merge(met)
}

// take returns who was heard, in the order of their serials, and forgets them.
func (s *strangers) take() []telematics.UnknownUnit {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := make([]telematics.UnknownUnit, 0, len(s.heard))
	for _, stranger := range s.heard {
		heard = append(heard, stranger)
	}
	clear(s.heard)
	slices.SortFunc(heard, func(a, b telematics.UnknownUnit) int { return strings.Compare(string(a.Unit), string(b.Unit)) })
	return heard
}

// putBack takes in again what could not be written down.
func (s *strangers) putBack(heard []telematics.UnknownUnit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stranger := range heard {
		s.add(stranger)
	}
}

// noteStrangers writes down who was heard, again and again, until the context ends.
func (b *Broker) noteStrangers(ctx context.Context) error {
	return each(ctx, noteEvery, func() { b.writeStrangers(ctx) })
}

func (b *Broker) writeStrangers(ctx context.Context) {
	heard := b.strangers.take()
	if len(heard) == 0 || b.Strangers == nil {
		return
	}
	ctx, cancel := b.step(context.WithoutCancel(ctx))
	defer cancel()
	if err := b.Strangers.NoteStrangers(ctx, heard); err != nil {
		b.strangers.putBack(heard)
		b.Logger.Warn("units without a vehicle not written down; they are kept for the next time", "count", len(heard), "err", err)
	}
}
