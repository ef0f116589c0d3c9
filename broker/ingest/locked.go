package ingest

import (
	"context"
	"errors"
	"slices"
	"sync"

	"motorpool/guard"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// aside holds the presence of units that other transactions have locked, in the order of arrival.
// Later presence of such a unit joins it: an offline that came before its online would count as of
// a former session. The zero value is empty. It is safe for concurrent use.
type aside struct {
	mu   sync.Mutex
	of   map[telematics.Unit][]delivery.Observation // none is empty
	held int
}

// follow sets aside the presence of units that have some there, and returns the others. Beyond
// maxLocked, presence is lost.
func (a *aside) follow(observations []delivery.Observation) (others []delivery.Observation, lost int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.held == 0 {
		return observations, 0
	}
	for _, o := range observations {
		switch {
		case o.Presence == nil || len(a.of[o.Unit]) == 0:
			others = append(others, o)
		case !a.add(o):
			lost++
		}
	}
	return others, lost
}

// begin sets aside presence of units that have none there, and returns these units. Beyond
// maxLocked, presence is lost.
func (a *aside) begin(locked []delivery.Observation) (units []telematics.Unit, lost int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range locked {
		isNew := len(a.of[o.Unit]) == 0
		switch added := a.add(o); {
		case !added:
			lost++
		case isNew:
			units = append(units, o.Unit)
		}
	}
	return units, lost
}

// add reports false where too many are held.
func (a *aside) add(o delivery.Observation) bool {
	if a.held == maxLocked {
		return false
	}
	if a.of == nil {
		a.of = map[telematics.Unit][]delivery.Observation{}
	}
	a.of[o.Unit] = append(a.of[o.Unit], o)
	a.held++
	return true
}

// first returns the first observations of each unit, at most n. They stay here.
func (a *aside) first(n int, units []telematics.Unit) (observations []delivery.Observation) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, unit := range units {
		observations = append(observations, a.of[unit][:min(n, len(a.of[unit]))]...)
	}
	return observations
}

// remove removes the observations that first has returned, except those of units that are still
// locked. It returns the units that have more.
func (a *aside) remove(units []telematics.Unit, tried, locked []delivery.Observation) []telematics.Unit {
	still := map[telematics.Unit]bool{}
	for _, o := range locked {
		still[o.Unit] = true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range tried {
		if !still[o.Unit] {
			a.of[o.Unit] = a.of[o.Unit][1:]
			a.held--
		}
	}
	return slices.DeleteFunc(units, func(unit telematics.Unit) bool {
		if len(a.of[unit]) > 0 {
			return false
		}
		delete(a.of, unit)
		return true
	})
}

// drop removes all of units, and returns how many observations that were.
func (a *aside) drop(units []telematics.Unit) (dropped int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, unit := range units {
		dropped += len(a.of[unit])
		delete(a.of, unit)
	}
	a.held -= dropped
	return dropped
}

// storeLocked stores what is set aside of units, as soon as these are not locked any more, and
// tries a last time when the context ends.
func (q *queue) storeLocked(ctx context.Context, units []telematics.Unit) {
	defer func() {
		if n := q.aside.drop(units); n > 0 { // after a panic
			q.lose(n, errLocked)
		}
	}()
	for pause := lockedRetry; len(units) > 0; {
		last, most := !guard.Pause(ctx, pause), max(1, MaxBatch/len(units))
		if last {
			most = maxLocked
		}
		tried := q.aside.first(most, units)
		locked := q.store(ctx, tried)
		if pause = min(2*pause, writeRetry); len(locked) < len(tried) {
			pause = lockedRetry // the others may have more
		}
		if last && len(locked) > 0 {
			q.lose(len(locked), errLocked)
			locked = nil
		}
		units = q.aside.remove(units, tried, locked)
	}
}

var errLocked = errors.New("another transaction holds their units")
