// Package watch makes units report often while their vehicles are watched: by a stream of events, a
// refreshed status, or a running booking. A dialect defines whether its units can be watched, and
// by which message (telematics.Watchable).
//
// A unit is watched under a name for each instance, for a limited time:
//
//   - An instance renews and ends its own watches alone, so none ends another's.
//   - What an instance watches ends by itself where the instance dies.
//   - Streams are watched by the instance that serves them. One instance at a time has the lease to
//     watch for bookings. Two at the same time do no harm.
package watch

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/guard"
	"motorpool/telematics"
)

// Config configures Watches. Dialects, Publish and Watcher are required.
type Config struct {
	Dialects telematics.Dialects
	// Publish passes a message to the MQTT client, and returns an error where that did not accept
	// it.
	Publish func(telematics.Transmission) error
	// Watcher is the name of this instance, unique among all instances that watch.
	Watcher string
	// Booked returns the vehicles with a running booking whose units speak one of the protocols,
	// with their units and protocols; other fields are not used. Nil: bookings are not watched.
	Booked func(context.Context, []telematics.Protocol) ([]telematics.Vehicle, error)
	// TryLease takes or extends the lease for watching bookings, for LeaseFor, and reports whether
	// this instance holds it. Defaults to true.
	TryLease func(context.Context) (bool, error)
	Logger   *slog.Logger // Defaults to slog.Default().
	// Guard recovers panics. Nil: they are only logged.
	Guard *guard.Guard
}

// Watches are the watched units of an instance. It is safe for concurrent use.
type Watches struct {
	Config
	wake   chan struct{}              // holds one: something is due
	booked map[telematics.Unit]func() // ends of the watches of the latest read of bookings

	mu    sync.Mutex // guards the fields below
	units map[telematics.Unit]*watched
	queue []*watched // those that are due
}

// watched is a unit with a need, or one whose watch is about to end.
type watched struct {
	unit    telematics.Unit
	dialect telematics.Watchable
	needs   int // streams, refreshed statuses, a booking
	due     time.Time
	timer   *time.Timer // adds it to the queue when it is due
}

// New assembles watches. Nothing is published before Run.
func New(c Config) *Watches {
	c.Logger = cmp.Or(c.Logger, slog.Default())
	if c.TryLease == nil {
		c.TryLease = func(context.Context) (bool, error) { return true, nil }
	}
	return &Watches{Config: c, wake: make(chan struct{}, 1), units: map[telematics.Unit]*watched{}}
}

// Run renews and ends watches. It blocks until the context ends, and returns nil. Watches that are
// open then expire at their units.
func (w *Watches) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return w.Guard.Keep(ctx, "publish watches", w.publishAll) })
	group.Go(func() error { return w.Guard.Keep(ctx, "follow bookings", w.followBookings) })
	return group.Wait()
}

// Begin begins to watch the unit of a vehicle, where it can be watched, until the returned function
// is called. It does not block. The watch stays with that unit, also where the vehicle gets another
// one.
func (w *Watches) Begin(v telematics.Vehicle) (end func()) {
	dialect, ok := w.Dialects.Watchable(v.Protocol)
	if !ok || v.Unit == "" {
		return func() {}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.add(v.Unit, dialect).needs++
	return sync.OnceFunc(func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if u := w.units[v.Unit]; u != nil {
			u.needs--
			w.endSoon(u)
		}
	})
}

// Briefly watches the unit of a vehicle for a minute. It does not block.
func (w *Watches) Briefly(v telematics.Vehicle) {
	end := w.Begin(v)
	time.AfterFunc(briefly, func() { _ = w.Guard.Do("end watch", end) })
}

// add returns a watched unit; a new one is due immediately. The caller holds mu.
func (w *Watches) add(unit telematics.Unit, dialect telematics.Watchable) *watched {
	u := w.units[unit]
	if u == nil {
		u = &watched{unit: unit, dialect: dialect, due: time.Now()}
		u.timer = time.AfterFunc(0, func() { _ = w.Guard.Do("queue a watch", func() { w.enqueue(u) }) })
		w.units[unit] = u
	}
	return u
}

func (w *Watches) enqueue(u *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, u)
	w.awake()
}

// after makes a unit that is not in the queue due after a while. The caller holds mu.
func (u *watched) after(wait time.Duration) {
	u.due = time.Now().Add(wait)
	u.timer.Reset(wait)
}

// endSoon makes the end of a watch due after linger, where there is no need any more. The caller
// holds mu.
func (w *Watches) endSoon(u *watched) {
	if u.needs == 0 && time.Until(u.due) > linger {
		u.after(linger)
	}
}

func (w *Watches) awake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *Watches) publishAll(ctx context.Context) error {
	w.awake() // a panic may have left some
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.wake:
			w.publishDue()
		}
		if !guard.Pause(ctx, pace) { // never faster, whatever is due
			return nil
		}
	}
}

// publishDue publishes the messages that are due, at most a burst.
func (w *Watches) publishDue() {
	for range burst {
		u, message := w.next()
		if u == nil {
			return
		}
		if err := w.Publish(message); err != nil {
			w.retry(u)
			w.Logger.Debug("watch not renewed", "unit", u.unit, "err", err)
		}
	}
	w.awake() // there may be more
}

// next returns the unit that is due first, with the message to it; nil: none is. A watch without a
// need ends.
func (w *Watches) next() (*watched, telematics.Transmission) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, telematics.Transmission{}
	}
	u := w.queue[0]
	w.queue = w.queue[1:]
	if u.needs == 0 {
		delete(w.units, u.unit)
		return u, u.dialect.Watch(u.unit, w.Watcher, false)
	}
	u.after(time.Duration(float64(u.dialect.WatchedFor()) / renewals))
	return u, u.dialect.Watch(u.unit, w.Watcher, true)
}

// retry makes a renewal that was not published due again. The end of a watch is not repeated: the
// watch expires by itself.
func (w *Watches) retry(u *watched) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.units[u.unit] == u {
		u.after(retryAfter)
	}
}
