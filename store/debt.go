package store

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"motorpool/telematics"
)

// maxDebts bounds the units of which Postgres is owed something.
const maxDebts = 1 << 17

var errTooManyDebts = awayError{errors.New("postgres is behind by too many units")}

// debts is what Postgres does not have yet, joined into one sighting for each unit: what
// comes while it is slow makes none of it longer.
type debts struct {
	mu    sync.Mutex // guards what follows
	owed  map[telematics.Unit]sighting
	going map[telematics.Unit]sighting // being written
}

func newDebts() *debts {
	return &debts{owed: map[telematics.Unit]sighting{}, going: map[telematics.Unit]sighting{}}
}

// add reports an error where there is no room for one more unit.
func (d *debts) add(s sighting) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.owed[s.Unit]
	if !ok && len(d.owed) >= maxDebts {
		return errTooManyDebts
	}
	d.owed[s.Unit] = known.join(s)
	return nil
}

// join returns two sightings of a unit as one.
func (s sighting) join(other sighting) sighting {
	switch {
	case s.Unit == "":
		return other
	case other.Unit == "":
		return s
	}
	if s.At.After(other.At) {
		other.At = s.At
	}
	if other.Report == nil {
		other.Report = s.Report
	}
	other.readings = telematics.Join(s.readings, other.readings)
	return other
}

// begin returns all that is owed, by unit, to be written now.
func (d *debts) begin() []sighting {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.going, d.owed = d.owed, map[telematics.Unit]sighting{}
	units := slices.Sorted(maps.Keys(d.going))
	list := make([]sighting, len(units))
	for i, unit := range units {
		list[i] = d.going[unit]
	}
	return list
}

// end notes that all was written but what is left, which is owed again.
func (d *debts) end(left []sighting) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range left {
		d.owed[s.Unit] = s.join(d.owed[s.Unit])
	}
	d.going = nil
}

// owing is what was owed at one moment. Whoever reads Postgres looks at it before, and
// joins it after: what is written meanwhile is in the one or the other.
type owing struct {
	debts *debts
	parts [2]map[telematics.Unit]sighting // guarded by the lock of debts; going first
}

func (d *debts) now() owing {
	d.mu.Lock()
	defer d.mu.Unlock()
	return owing{d, [2]map[telematics.Unit]sighting{d.going, d.owed}}
}

// of returns what was owed of a unit; its unit is empty where that is nothing.
func (o owing) of(unit telematics.Unit) sighting {
	o.debts.mu.Lock()
	defer o.debts.mu.Unlock()
	return o.parts[0][unit].join(o.parts[1][unit])
}

// size returns of how many units something is owed.
func (d *debts) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.owed) + len(d.going)
}
