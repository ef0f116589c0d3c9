package broker

import (
	"context"
	"slices"
	"strings"
	"sync"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// unknownUnits are the units without a vehicle that were heard since they were last stored.
type unknownUnits struct {
	metrics *metrics

	mu    sync.Mutex
	heard map[telematics.Unit]telematics.UnknownUnit // at most telematics.MaxUnknownUnits
}

// note takes those of the observations that came from unknown units, and returns how many
// they are. What the MQTT broker says of a unit, a retained presence or a last will, is not
// the unit's voice.
func (s *unknownUnits) note(unknown []telematics.Unit, observations []delivery.Observation) int {
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
func (s *unknownUnits) add(met telematics.UnknownUnit) {
	known, ok := s.heard[met.Unit]
	if !ok && len(s.heard) == telematics.MaxUnknownUnits {
		s.metrics.dropped.unknownUnitsQueueFull.Inc()
		return
	}
	s.heard[met.Unit] = known.Merge(met)
}

// take returns who was heard, in the order of their serials, and forgets them.
func (s *unknownUnits) take() []telematics.UnknownUnit {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := make([]telematics.UnknownUnit, 0, len(s.heard))
	for _, unit := range s.heard {
		heard = append(heard, unit)
	}
	clear(s.heard)
	slices.SortFunc(heard, func(a, b telematics.UnknownUnit) int { return strings.Compare(string(a.Unit), string(b.Unit)) })
	return heard
}

// putBack takes in again what could not be written down.
func (s *unknownUnits) putBack(heard []telematics.UnknownUnit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, unit := range heard {
		s.add(unit)
	}
}

// watchUnknownUnits writes down who was heard, again and again, until the context ends.
func (b *Broker) watchUnknownUnits(ctx context.Context) error {
	return each(ctx, unknownUnitsEvery, func() { b.storeUnknownUnits(ctx) })
}

func (b *Broker) storeUnknownUnits(ctx context.Context) {
	heard := b.unknownUnits.take()
	if len(heard) == 0 || b.Strangers == nil {
		return
	}
	ctx, cancel := b.step(context.WithoutCancel(ctx))
	defer cancel()
	if err := b.Strangers.NoteStrangers(ctx, heard); err != nil {
		b.unknownUnits.putBack(heard)
		b.Logger.Warn("unknown units not stored, retrying", "count", len(heard), "err", err)
	}
}
