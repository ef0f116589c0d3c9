package places

import (
	"context"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/guard"
	"motorpool/telematics"
)

// Config assembles a book. Stations and Log are required.
type Config struct {
	Stations Stations
	// Geocoder defaults to none: places away from stations have no address.
	Geocoder Geocoder
	Limiter  Limiter // required with a Geocoder
	Log      *slog.Logger
	Metrics  prometheus.Registerer // Defaults to none: the counters are not exported.
}

// Book has the addresses of places, in memory. It is safe for concurrent use.
type Book struct {
	Config
	requests *prometheus.CounterVec // by result; nil: there is no geocoder

	mu       sync.RWMutex
	stations map[telematics.AgencyID][]telematics.Station // nil: not loaded yet

	// Answers have their times: the goroutine of the library's cache that expires never ends.
	known *lru.Cache[cell, answer]

	// Each cell is queued once, so that a place that is read often delays no other.
	queued sync.Map // of cells
	wanted chan telematics.Position
}

// answer is what the geocoder has said of a place; an empty text: there is no address.
type answer struct {
	text string
	at   time.Time
}

// cell is a place: answers for one position of it count for all.
type cell struct{ latitude, longitude int32 }

func cellOf(p telematics.Position) cell {
	return cell{int32(math.Floor(p.Latitude / cellSize)), int32(math.Floor(p.Longitude / cellSize))}
}

// New returns an empty book.
func New(config Config) *Book {
	known, err := lru.New[cell, answer](answers)
	if err != nil {
		panic(err) // the size is a constant
	}
	b := &Book{Config: config, known: known, wanted: make(chan telematics.Position, queueSize)}
	if config.Geocoder != nil {
		b.requests = promauto.With(config.Metrics).NewCounterVec(prometheus.CounterOpts{
			Name: "motorpool_geocoder_requests_total", Help: "Requests to the geocoder, by their result.",
		}, []string{"result"})
		for _, result := range []string{"found", "none", "failed"} {
			b.requests.WithLabelValues(result)
		}
	}
	return b
}

// Address returns the address of a position of an agency's vehicle, or "" where none is known. It
// does no I/O. If the vehicle stands, and nothing is known of the place, the geocoder is queried in
// the background.
func (b *Book) Address(agency telematics.AgencyID, p telematics.Position, stands bool) string {
	b.mu.RLock()
	loaded := b.stations != nil
	station, near := telematics.NearestStation(b.stations[agency], p, telematics.StationWithin)
	b.mu.RUnlock()
	if near || b.Geocoder == nil || !loaded { // stations take precedence
		return station.Address
	}
	known, ok := b.answer(p)
	if !ok && stands {
		b.want(p)
	}
	return known.text
}

// want queues a place, unless it is queued, or the queue is full.
func (b *Book) want(p telematics.Position) {
	if _, queued := b.queued.LoadOrStore(cellOf(p), true); queued {
		return
	}
	select {
	case b.wanted <- p:
	default:
		b.queued.Delete(cellOf(p))
	}
}

func (b *Book) answer(p telematics.Position) (answer, bool) {
	known, ok := b.known.Get(cellOf(p))
	if !ok || time.Since(known.at) > keepFor {
		return answer{}, false
	}
	return known, true
}

// ReadStations keeps the stations up to date. It blocks until the context ends, then returns nil;
// failures are logged and retried.
func (b *Book) ReadStations(ctx context.Context) error {
	var outage guard.Outage
	for {
		wait := stationsEvery
		err := b.loadStations(ctx)
		outage.Note(ctx, b.Log, "addresses of stations not read", err)
		if err != nil {
			wait = loadAgain
		}
		if !guard.Pause(ctx, wait) {
			return nil
		}
	}
}

func (b *Book) loadStations(ctx context.Context) error {
	all, err := b.Stations.ListStations(ctx, telematics.AgencyQuery{})
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

// QueryGeocoder requests the addresses that reads lacked, one after the other. It blocks until the
// context ends, then returns nil; failures are logged.
func (b *Book) QueryGeocoder(ctx context.Context) error {
	var outage guard.Outage
	failures := 0
	for {
		select {
		case <-ctx.Done():
			return nil
		case p := <-b.wanted:
			b.queued.Delete(cellOf(p))
			if _, known := b.answer(p); known {
				continue // since it was wanted
			}
			if !b.mayAsk(ctx) {
				continue // it is wanted again by the next read
			}
			err := b.ask(ctx, p)
			outage.Note(ctx, b.Log, "geocoder failed", err)
			if err == nil {
				failures = 0
				continue
			}
			failures++
			if !guard.Pause(ctx, putOff(failures, err)) {
				return nil
			}
		}
	}
}

// mayAsk waits until a request may be sent, and reports false if that is not known, or the context
// ended.
func (b *Book) mayAsk(ctx context.Context) bool {
	limit := telematics.Limit{Key: "geocoder", Rate: telematics.Rate{Limit: 1, Per: pace}, Cost: 1}
	for {
		quotas, err := b.Limiter.Take(ctx, limit)
		if err != nil {
			guard.Pause(ctx, pace)
			return false
		}
		if !quotas[0].Over {
			return ctx.Err() == nil
		}
		if !guard.Pause(ctx, quotas[0].Reset) {
			return false
		}
	}
}

func (b *Book) ask(ctx context.Context, p telematics.Position) error {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	text, err := b.Geocoder.Address(ctx, rounded(p))
	switch {
	case err != nil:
		b.requests.WithLabelValues("failed").Inc()
		return err
	case text == "":
		b.requests.WithLabelValues("none").Inc()
	default:
		b.requests.WithLabelValues("found").Inc()
	}
	b.known.Add(cellOf(p), answer{text, time.Now()})
	return nil
}

// rounded rounds to about a metre: a geocoder needs no more.
func rounded(p telematics.Position) telematics.Position {
	const perDegree = 1e5
	return telematics.Position{
		Latitude:  math.Round(p.Latitude*perDegree) / perDegree,
		Longitude: math.Round(p.Longitude*perDegree) / perDegree,
	}
}
