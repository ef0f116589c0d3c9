package places

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"motorpool/telematics"
)

const (
	stationsEvery = time.Minute     // between two loads of the stations
	learnEvery    = 2 * time.Second // between two loads of new addresses, from any instance
	reloadEvery   = time.Hour       // between two full loads, which drop deleted addresses
	loadAgain     = time.Second     // after a failure

	keepAtMost = 200_000 // addresses; about 30 MB in memory
)

// BookConfig assembles a book. All but Geocoded is required.
type BookConfig struct {
	Record Record
	// Geocoded also loads addresses from a geocoder. Defaults to stations only.
	Geocoded bool
	Log      *slog.Logger
}

// Book is an in-memory cache of the addresses of places, filled by Run; empty, it returns no
// address. It is safe for concurrent use.
type Book struct {
	BookConfig

	mu       sync.RWMutex
	stations map[telematics.AgencyID][]telematics.Station
	known    addressGrid
	last     int64 // id of the newest address that is known
}

// NewBook returns a book that is empty until Run has filled it.
func NewBook(config BookConfig) *Book { return &Book{BookConfig: config} }

// Address returns the cached address of a position, for a vehicle of an agency, or "". It does
// no I/O.
func (b *Book) Address(agency telematics.AgencyID, p telematics.Position) string {
	address, _ := b.look(agency, p)
	return address
}

// Knows reports whether no geocoder request is needed for a position: its address is cached, or
// the fact that it has none.
func (b *Book) Knows(agency telematics.AgencyID, p telematics.Position) bool {
	_, knows := b.look(agency, p)
	return knows
}

func (b *Book) look(agency telematics.AgencyID, p telematics.Position) (string, bool) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if station, near := telematics.NearestStation(b.stations[agency], p, telematics.StationWithin); near {
		return station.Address, true
	}
	a, knows := b.known.nearest(p)
	return a.Text, knows
}

// ready reports whether the stations, which take precedence over addresses, are loaded.
func (b *Book) ready() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.stations != nil
}

// Run keeps the book up to date. It blocks until the context ends, then returns nil; failures are
// logged and retried.
func (b *Book) Run(ctx context.Context) error {
	condition := condition{log: b.Log, source: "record"}
	var stations, reload time.Time // when next
	for {
		wait, err := learnEvery, error(nil)
		now := time.Now()
		if !now.Before(stations) {
			if err = b.loadStations(ctx); err == nil {
				stations = now.Add(stationsEvery)
			}
		}
		if err == nil && b.Geocoded {
			if now.Before(reload) {
				err = b.Learn(ctx)
			} else if err = b.reload(ctx); err == nil {
				reload = now.Add(reloadEvery)
			}
		}
		if ctx.Err() == nil {
			condition.is(err)
		}
		switch {
		case err != nil:
			wait = loadAgain
		case !b.Geocoded:
			wait = stationsEvery
		}
		if !sleep(ctx, wait) {
			return nil
		}
	}
}

func (b *Book) loadStations(ctx context.Context) error {
	all, err := b.Record.Stations(ctx, 0)
	if err != nil {
		return err
	}
	stations := map[telematics.AgencyID][]telematics.Station{}
	for _, s := range all {
		if s.Address != "" {
			stations[s.AgencyID] = append(stations[s.AgencyID], s)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stations = stations
	return nil
}

// Learn loads the addresses that were stored since the last load.
func (b *Book) Learn(ctx context.Context) error {
	b.mu.RLock()
	after := b.last
	b.mu.RUnlock()
	added, err := b.Record.Addresses(ctx, after, keepAtMost)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.known == nil {
		b.known = addressGrid{}
	}
	for _, a := range added {
		if a.ID > b.last { // else a concurrent call has added it
			b.known.add(a)
			b.last = a.ID
		}
	}
	return nil
}

// reload loads all addresses, and so drops deleted ones.
func (b *Book) reload(ctx context.Context) error {
	all, err := b.Record.Addresses(ctx, 0, keepAtMost)
	if err != nil {
		return err
	}
	fresh, last := addressGrid{}, int64(0)
	for _, a := range all {
		fresh.add(a)
		last = a.ID
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.known, b.last = fresh, last
	return nil
}

// sleep reports false if the context ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// addressGrid finds the address nearest to a position. It is a grid of cubes around the
// globe with edges of MovedBy, so that the poles and the date line are no special cases.
type addressGrid map[cube][]telematics.Address

type cube struct{ x, y, z int32 }

func cubeOf(p telematics.Position) cube {
	x, y, z := p.Cartesian()
	at := func(metres float64) int32 { return int32(math.Floor(metres / telematics.MovedBy)) }
	return cube{at(x), at(y), at(z)}
}

func (k addressGrid) add(a telematics.Address) {
	at := cubeOf(a.Position)
	k[at] = append(k[at], a)
}

// nearest returns the nearest address that applies to a position; of two that are equally
// near, the later one.
func (k addressGrid) nearest(p telematics.Position) (telematics.Address, bool) {
	var nearest telematics.Address
	reach, found := float64(telematics.MovedBy), false
	at := cubeOf(p)
	for x := at.x - 1; x <= at.x+1; x++ {
		for y := at.y - 1; y <= at.y+1; y++ {
			for z := at.z - 1; z <= at.z+1; z++ {
				for _, a := range k[cube{x, y, z}] {
					if d := p.Metres(a.Position); d < reach || d == reach && a.ID > nearest.ID {
						nearest, reach, found = a, d, true
					}
				}
			}
		}
	}
	// At a distance of exactly MovedBy the address no longer applies.
	return nearest, found && reach < telematics.MovedBy
}
