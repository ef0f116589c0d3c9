package ingest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// unknownUnits are the units without a vehicle that were heard since they were last stored.
type unknownUnits struct {
	overflow prometheus.Counter

	mu    sync.Mutex
	heard map[telematics.Unit]telematics.UnknownUnit // at most telematics.MaxUnknownUnits
}

// note adds the observations of unknown units, and returns how many there are. A retained presence
// or a last will is counted, but not added: it comes from the MQTT broker, not from the unit.
func (s *unknownUnits) note(unknown []telematics.Unit, observations []delivery.Observation) int {
	if len(unknown) == 0 {
		return 0
	}
	isUnknown := make(map[telematics.Unit]bool, len(unknown))
	for _, unit := range unknown {
		isUnknown[unit] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range observations {
		if !isUnknown[o.Unit] {
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
func (s *unknownUnits) add(u telematics.UnknownUnit) {
	earlier, ok := s.heard[u.Unit]
	if !ok && len(s.heard) == telematics.MaxUnknownUnits {
		s.overflow.Inc()
		return
	}
	s.heard[u.Unit] = earlier.Merge(u)
}

// drain removes the units, and returns them in the order of their serials.
func (s *unknownUnits) drain() []telematics.UnknownUnit {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := slices.SortedFunc(maps.Values(s.heard), func(a, b telematics.UnknownUnit) int { return cmp.Compare(a.Unit, b.Unit) })
	clear(s.heard)
	return heard
}

// putBack adds units again that could not be stored.
func (s *unknownUnits) putBack(heard []telematics.UnknownUnit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, unit := range heard {
		s.add(unit)
	}
}

func (in *Ingest) storeUnknownUnits(ctx context.Context) {
	heard := in.unknownUnits.drain()
	if len(heard) == 0 || in.UnknownUnits == nil {
		return
	}
	ctx, cancel := in.step(ctx)
	defer cancel()
	err := in.UnknownUnits.StoreUnknownUnits(ctx, heard)
	if in.outages.unknownUnits.Note(ctx, in.Logger, "unknown units not stored", err); err != nil {
		in.unknownUnits.putBack(heard)
	}
}
