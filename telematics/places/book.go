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
	stationsEvery = time.Minute     // a new station is known after
	learnEvery    = 2 * time.Second // an address that another instance asked for is known after
	reloadEvery   = time.Hour       // an address that was forgotten is gone after
	loadAgain     = time.Second     // after a failure

	keepAtMost = 200_000 // addresses; in memory some 30 MB
)

// BookConfig assembles a book. All but Geocoded is required.
type BookConfig struct {
	Record Record
	// Geocoded says whether addresses from a geocoder count. Defaults to stations only.
	Geocoded bool
	Log      *slog.Logger
}

// Book knows the addresses of places. Its zero knowledge is no address. It is safe for
// concurrent use.
type Book struct {
	BookConfig

	mu       sync.RWMutex
	stations map[telematics.AgencyID][]telematics.Station
	known    addressGrid
	last     int64 // id of the newest address that is known
}

// NewBook returns a book that is empty until Run has filled it.
func NewBook(config BookConfig) *Book { return &Book{BookConfig: config} }

// Address returns the address of a vehicle of an agency that stands somewhere, or "".
func (b *Book) Address(agency telematics.AgencyID, p telematics.Position) string {
	address, _ := b.look(agency, p)
	return address
}

// Knows reports whether there is nothing to ask about a place: its address is known, or
// that it has none.
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

// ready reports whether the stations are there, which come first.
func (b *Book) ready() bool {
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.stations != nil
}

// Run keeps the book up to date until the context ends.
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

// Learn adds the addresses that were kept since.
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
		if a.ID > b.last { // else another call has added it meanwhile
			b.known.add(a)
			b.last = a.ID
		}
	}
	return nil
}

// reload drops what was forgotten.
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

// sleep reports false where the context ended before.
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

// addressGrid finds the address of the place nearest to a position. It is a grid of cubes
// around the globe, each as long as an address reaches, so that neither the poles nor the
// date line are anything special.
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

// nearest returns what is known of the place within reach that is nearest; of two that
// are equally near, the later one.
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
	// Having moved by MovedBy is having moved away.
	return nearest, found && reach < telematics.MovedBy
}
