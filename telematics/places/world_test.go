package places

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"motorpool/telematics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// record is the shared store, in memory. It follows the rules of store/vehicles/addresses.go.
type record struct {
	mu        sync.Mutex
	stations  []telematics.Station
	parked    []telematics.Parked
	addresses []telematics.Address
	holder    uuid.UUID
	freeAt    time.Time
	failures  int
	leases    int           // leases acquired
	keptIn    []int         // the lease of each stored address
	err       error         // returned by each call
	slow      time.Duration // how long KeepAddress takes; constant
}

func (r *record) Stations(context.Context, telematics.AgencyID) ([]telematics.Station, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.stations), r.err
}

func (r *record) Addresses(_ context.Context, after int64, _ int) ([]telematics.Address, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.addresses[min(int(after), len(r.addresses)):]), r.err
}

func (r *record) Parked(context.Context) ([]telematics.Parked, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.parked), r.err
}

func (r *record) AcquireLease(_ context.Context, holder uuid.UUID, hold time.Duration) (int, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.freeAt.After(time.Now()) {
		return 0, false, r.err
	}
	r.holder, r.freeAt = holder, time.Now().Add(hold)
	r.leases++
	return r.failures, true, nil
}

func (r *record) KeepAddress(ctx context.Context, holder uuid.UUID, a telematics.Address, hold time.Duration) (bool, error) {
	if !sleep(ctx, r.slow) {
		return false, ctx.Err()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil || r.holder != holder || !r.freeAt.After(time.Now()) {
		return false, r.err
	}
	r.freeAt, r.failures = time.Now().Add(hold), 0
	a.ID, a.AskedAt = int64(len(r.addresses)+1), time.Now()
	r.addresses, r.keptIn = append(r.addresses, a), append(r.keptIn, r.leases)
	return true, nil
}

func (r *record) ReleaseLease(_ context.Context, holder uuid.UUID, failures int, putOff time.Duration) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil && r.holder == holder {
		r.holder, r.failures, r.freeAt = uuid.UUID{}, failures, time.Now().Add(putOff)
	}
	return r.err
}

func (r *record) ForgetAddresses(context.Context, time.Duration, int) error { return nil }

func (r *record) set(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

// geocoder is a server that answers with a function, and records the requests.
type geocoder struct {
	mu      sync.Mutex
	takes   time.Duration
	say     func(telematics.Position) (string, error)
	asked   []time.Time
	ended   []time.Time
	about   []telematics.Position
	at, max int // requests in flight
}

func (g *geocoder) Address(ctx context.Context, p telematics.Position) (string, error) {
	g.mu.Lock()
	g.asked, g.about = append(g.asked, time.Now()), append(g.about, p)
	g.at++
	g.max = max(g.max, g.at)
	takes, say := g.takes, g.say
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.at--
		g.ended = append(g.ended, time.Now())
	}()
	if !sleep(ctx, takes) {
		return "", ctx.Err()
	}
	return say(p)
}

func (g *geocoder) requests() []time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.asked)
}

func (g *geocoder) places() []telematics.Position {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.about)
}

// instance is one process of the service.
type instance struct {
	book   *Book
	finder *Finder
	stop   func()
}

// start starts an instance, within a synctest bubble.
func start(t *testing.T, r *record, g *geocoder, log *slog.Logger) *instance {
	t.Helper()
	i := &instance{book: NewBook(BookConfig{Record: r, Geocoded: g != nil, Log: log})}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	run := func(part func(context.Context) error) {
		running.Go(func() {
			if err := part(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	run(i.book.Run)
	if g != nil {
		i.finder = NewFinder(FinderConfig{Geocoder: g, Fleet: r, Leases: r, Book: i.book, Log: log})
		run(i.finder.Run)
	}
	i.stop = sync.OnceFunc(func() { cancel(); running.Wait() })
	t.Cleanup(i.stop)
	return i
}

var munich = telematics.Position{Latitude: 48.1374, Longitude: 11.5755}

// north returns a position some metres to the north.
func north(metres float64) telematics.Position {
	p := telematics.Position{Latitude: munich.Latitude + metres/111_195.08, Longitude: munich.Longitude}
	if d := munich.Metres(p); d < metres-0.01 || d > metres+0.01 {
		panic("the position is not to the north")
	}
	return p
}

func street(telematics.Position) (string, error) { return "Marienplatz 1, München", nil }

// busy is an error with the time to wait.
type busy time.Duration

func (busy) Error() string               { return "too many requests" }
func (b busy) RetryAfter() time.Duration { return time.Duration(b) }

var errBroken = errors.New("broken")
