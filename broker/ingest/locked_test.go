package ingest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"motorpool/internal/assert"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// lockedTwins stores presence, except of a unit while another transaction holds it.
type lockedTwins struct {
	Twins
	mu     sync.Mutex
	locked telematics.Unit
	stored map[telematics.Unit]time.Time
}

func (l *lockedTwins) Observe(_ context.Context, observations []delivery.Observation) (seen delivery.Seen, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range observations {
		if o.Unit == l.locked {
			seen.Locked = []telematics.Unit{o.Unit}
		} else {
			l.stored[o.Unit] = time.Now()
		}
	}
	return seen, nil
}

// storedAt returns when the presence of a unit was stored; zero: it was not.
func (l *lockedTwins) storedAt(unit telematics.Unit) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored[unit]
}

func newLockedIngest(twins Twins) *Ingest {
	return New(Config{
		Twins: twins, Changed: func([]telematics.Change) {}, Now: time.Now, QueueSize: 100,
		StepTimeout: 3 * time.Second, Metrics: prometheus.NewRegistry(),
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropped"}, []string{"kind", "reason"}),
		Logger:  slog.New(slog.DiscardHandler),
	})
}

func presenceOf(unit telematics.Unit) observed {
	return observed{Observation: delivery.Observation{Unit: unit, Presence: &telematics.Presence{Status: telematics.Online}}}
}

// Presence of a unit that another transaction holds is stored once that ends, and delays no
// other.
func TestPresence_OfALockedUnitDelaysNoOther(t *testing.T) {
	for name, ends := range map[string]bool{"the lock ends": true, "the service stops": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				twins := &lockedTwins{locked: "held", stored: map[telematics.Unit]time.Time{}}
				in := newLockedIngest(twins)
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() { defer close(done); _ = in.contact.run(ctx) }()
				in.contact.add(presenceOf("held"))
				in.contact.add(presenceOf("other"))
				began := time.Now()
				time.Sleep(30 * time.Second)
				in.contact.add(presenceOf("later"))
				time.Sleep(time.Millisecond)
				if at := twins.storedAt("other"); at.IsZero() || at.Sub(began) > time.Second {
					t.Errorf("another unit's presence was stored at %v", at)
				}
				if twins.storedAt("later").IsZero() {
					t.Error("presence that came later was not stored")
				}
				if ends {
					twins.mu.Lock()
					twins.locked = ""
					twins.mu.Unlock()
					time.Sleep(2 * writeRetry)
				}
				stop()
				<-done
				lost := testutil.ToFloat64(in.metrics.dropped(observationKind, notStored))
				if stored := !twins.storedAt("held").IsZero(); stored != ends || (lost == 0) != ends {
					t.Errorf("stored %t, %v counted as lost", stored, lost)
				}
				assert.Equal(t, in.contact.aside.held, 0, "observations still count as waiting")
			})
		})
	}
}

// lockedContact merges the presence of one unit, as Postgres does, except while another
// transaction holds that.
type lockedContact struct {
	Twins
	mu      sync.Mutex
	free    time.Time
	fails   bool
	contact telematics.Contact
}

func (l *lockedContact) Observe(_ context.Context, observations []delivery.Observation) (seen delivery.Seen, _ error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, o := range observations {
		switch {
		case l.fails:
			l.fails = false
			panic("panic of the test")
		case time.Now().Before(l.free):
			seen.Locked = []telematics.Unit{o.Unit}
		default:
			l.contact = o.Contact(l.contact)
		}
	}
	return seen, nil
}

func (l *lockedContact) lockFor(d time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.free = time.Now().Add(d)
}

func (l *lockedContact) failNext() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = true
}

func (l *lockedContact) status() telematics.PresenceStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.contact.Status
}

// withLocked runs a test with a function that sends presence.
func withLocked(t *testing.T, test func(t *testing.T, twins *lockedContact, in *Ingest, send func(telematics.PresenceStatus, string))) {
	synctest.Test(t, func(t *testing.T) {
		twins := &lockedContact{}
		in := newLockedIngest(twins)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); _ = in.contact.run(ctx) }()
		test(t, twins, in, func(status telematics.PresenceStatus, session string) {
			p := telematics.Presence{Status: status, Session: session}
			p.After, _ = in.latest.Get("held")
			if session != "" && status != telematics.Offline {
				p.At = time.Now().Truncate(time.Millisecond)
			}
			o := presenceOf("held")
			o.At, o.Presence = time.Now(), &p
			in.contact.add(o)
			in.noteLatest("held", p.Mark(o.At, false), false)
		})
		stopped := time.Now()
		stop()
		<-done
		if took := time.Since(stopped); took > time.Second {
			t.Errorf("the stop took %v", took)
		}
		if n := in.contact.aside.held; n != 0 || len(in.contact.aside.of) != 0 {
			t.Errorf("%d observations are still set aside", n)
		}
	})
}

// A unit whose last will comes while its online waits for a lock ends offline, and so with all
// presence that comes before the lock is seen to be released.
func TestPresence_OfALockedUnitIsStoredInOrder(t *testing.T) {
	for name, sessions := range map[string][2]string{"sessions": {"one", "two"}, "no sessions": {}} {
		t.Run(name, func(t *testing.T) {
			withLocked(t, func(t *testing.T, twins *lockedContact, in *Ingest, send func(telematics.PresenceStatus, string)) {
				send(telematics.Online, sessions[0])
				time.Sleep(10 * time.Second)
				send(telematics.Offline, sessions[0])
				time.Sleep(10 * time.Second)
				for _, lock := range []struct {
					held     time.Duration
					connects int
				}{{5 * time.Millisecond, 1}, {5 * time.Millisecond, 2}, {time.Minute, 5}} {
					twins.lockFor(lock.held)
					for range lock.connects {
						send(telematics.Online, sessions[1])
						time.Sleep(10 * time.Millisecond)
						send(telematics.Offline, sessions[1])
						time.Sleep(10 * time.Millisecond)
					}
					time.Sleep(lock.held + 2*writeRetry)
					assert.Equal(t, twins.status(), telematics.Offline, "after a lock of %v the unit", lock.held)
				}
				assert.Equal(t, testutil.ToFloat64(in.metrics.dropped(observationKind, notStored)), 0, "observations lost")
			})
		})
	}
}

// A panic drops what waits for a lock, and later presence of the unit does not wait for it.
func TestPresence_OfALockedUnitIsStoredAfterAPanic(t *testing.T) {
	withLocked(t, func(t *testing.T, twins *lockedContact, in *Ingest, send func(telematics.PresenceStatus, string)) {
		twins.lockFor(10 * time.Millisecond)
		send(telematics.Online, "one")
		time.Sleep(time.Millisecond)
		twins.failNext()
		time.Sleep(time.Second)
		assert.Equal(t, testutil.ToFloat64(in.metrics.dropped(observationKind, notStored)), 1, "observations were lost")
		send(telematics.Online, "two")
		time.Sleep(time.Second)
		assert.Equal(t, twins.status(), telematics.Online, "the unit")
	})
}

// When the service stops, all that waits for a lock is counted as lost.
func TestPresence_OfALockedUnitDelaysNoStop(t *testing.T) {
	var stopped *Ingest
	withLocked(t, func(t *testing.T, twins *lockedContact, in *Ingest, send func(telematics.PresenceStatus, string)) {
		stopped = in
		twins.lockFor(time.Hour)
		for range 50 {
			send(telematics.Online, "one")
			time.Sleep(time.Second)
		}
	})
	assert.Equal(t, testutil.ToFloat64(stopped.metrics.dropped(observationKind, notStored)), 50, "observations counted as lost")
}
