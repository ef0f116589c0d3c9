package ingest

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/telematics"
)

// findings are what is known of units and not stored yet, merged for each unit. They are safe for
// concurrent use.
type findings[T interface{ Merge(later T) T }] struct {
	port     func(context.Context, []T) error // gets them by serial; nil: nothing is recorded
	what     string                           // fails, for the log
	batch    int                              // units that are stored together
	most     int                              // units; what is found of more is dropped and counted
	overflow prometheus.Counter

	mu     sync.Mutex
	of     map[telematics.Unit]T
	outage guard.Outage
}

func (f *findings[T]) add(unit telematics.Unit, found T) {
	if f.port == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	before, ok := f.of[unit]
	if !ok && len(f.of) >= f.most {
		f.overflow.Inc()
		return
	}
	if f.of == nil {
		f.of = map[telematics.Unit]T{}
	}
	f.of[unit] = before.Merge(found)
}

// drain removes a batch. It is in the order of serials.
func (f *findings[T]) drain() (units []telematics.Unit, drained []T) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for unit := range f.of { // in no order, so that none waits for long
		if len(units) == f.batch {
			break
		}
		units = append(units, unit)
	}
	slices.SortFunc(units, cmp.Compare[telematics.Unit])
	for _, unit := range units {
		drained = append(drained, f.of[unit])
		delete(f.of, unit)
	}
	return units, drained
}

// store stores a batch; others wait, and so does one that is not stored.
func (f *findings[T]) store(ctx context.Context, in *Ingest) {
	units, drained := f.drain()
	if len(units) == 0 {
		return
	}
	ctx, cancel := in.step(ctx)
	defer cancel()
	err := f.port(ctx, drained)
	if f.outage.Note(ctx, in.Logger, f.what, err); err != nil {
		for i, found := range drained {
			f.add(units[i], found)
		}
	}
}
