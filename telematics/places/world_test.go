package places

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"motorpool/guard"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is the shared store and the limit of all instances, in memory.
type world struct {
	mu       sync.Mutex
	stations []telematics.Station
	err      error     // returned by each call
	free     time.Time // when the next request may be sent
}

func (w *world) ListStations(context.Context, telematics.AgencyQuery) ([]telematics.Station, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.stations), w.err
}

func (w *world) Take(_ context.Context, limits ...telematics.Limit) ([]telematics.Quota, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return nil, w.err
	}
	now, rate := time.Now(), limits[0].Rate
	if wait := w.free.Sub(now); wait > 0 {
		return []telematics.Quota{{Over: true, Reset: wait}}, nil
	}
	w.free = now.Add(rate.Per / time.Duration(rate.Limit))
	return []telematics.Quota{{}}, nil
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// geocoder is a server that answers with a function, and records the requests.
type geocoder struct {
	mu    sync.Mutex
	takes time.Duration
	say   func(telematics.Position) (string, error)
	asked []time.Time
	about []telematics.Position
}

func (g *geocoder) Address(ctx context.Context, p telematics.Position) (string, error) {
	g.mu.Lock()
	g.asked, g.about = append(g.asked, time.Now()), append(g.about, p)
	takes, say := g.takes, g.say
	g.mu.Unlock()
	if !guard.Pause(ctx, takes) {
		return "", ctx.Err()
	}
	return say(p)
}

func (g *geocoder) requests() []time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

// start starts the book of an instance, within a synctest bubble.
func start(t *testing.T, w *world, g *geocoder, log *slog.Logger) (book *Book, stop func()) {
	t.Helper()
	config := Config{Stations: w, Limiter: w, Log: log}
	if g != nil {
		config.Geocoder = g
	}
	book = New(config)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	run := func(part func(context.Context) error) {
		running.Go(func() {
			assert.NoError(t, part(ctx))
		})
	}
	run(book.ReadStations)
	if g != nil {
		run(book.QueryGeocoder)
	}
	stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(stop)
	return book, stop
}

// lines collects log messages.
type lines struct {
	slog.Handler
	mu   sync.Mutex
	said []string
}

func (l *lines) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "what" {
			l.said = append(l.said, r.Message+": "+a.Value.String())
		}
		return true
	})
	return nil
}

func (l *lines) are(t *testing.T, want ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	slices.Sort(want)
	assert.EqualSlices(t, slices.Sorted(slices.Values(l.said)), want, "logged")
}

var quiet = slog.New(slog.DiscardHandler)

// munich is in the middle of a cell.
var munich = telematics.Position{Latitude: 160458.5 * cellSize, Longitude: 38585.5 * cellSize}

// north returns a position some metres to the north.
func north(metres float64) telematics.Position {
	return telematics.Position{Latitude: munich.Latitude + metres/111_195.08, Longitude: munich.Longitude}
}

// apart returns n positions that are 100 m apart.
func apart(n int) []telematics.Position {
	var at []telematics.Position
	for i := range n {
		at = append(at, north(float64(100*i)))
	}
	return at
}

func street(telematics.Position) (string, error) { return "Marienplatz 1, München", nil }

// busy is an error with the time to wait.
type busy time.Duration

func (busy) Error() string               { return "too many requests" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

var errBroken = errors.New("broken")
