package store

import (
	"errors"
	"maps"
	"slices"
	"sync"

	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// maxDebts bounds the units of which Postgres is owed something.
const maxDebts = 1 << 17

var errTooManyDebts = unavailable.Mark(errors.New("postgres is behind by too many units"))

// debts is what came of units that could not be looked up, joined by unit: Postgres is
// owed it all the same.
type debts struct {
	mu    sync.Mutex // guards what follows
	owed  map[telematics.Unit]sighting
	going int // being written
}

func newDebts() *debts { return &debts{owed: map[telematics.Unit]sighting{}} }

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
	if s.Unit == "" {
		return other
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

// begin returns all that is owed, by unit, to be written until end.
func (d *debts) begin() []sighting {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]sighting, 0, len(d.owed))
	for _, unit := range slices.Sorted(maps.Keys(d.owed)) {
		list = append(list, d.owed[unit])
	}
	d.owed, d.going = map[telematics.Unit]sighting{}, len(list)
	return list
}

func (d *debts) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.going = 0
}

// size returns of how many units something is owed.
func (d *debts) size() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.owed) + d.going
}
