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
		Twins: twins, Changed: func([]telematics.Change) {}, Now: time.Now, QueueSize: 100, StepTimeout: 3 * time.Second, Metrics: prometheus.NewRegistry(),
		Dropped: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "dropped"}, []string{"kind", "reason"}), Logger: slog.New(slog.DiscardHandler),
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
				go func() { defer close(done); in.contact.run(ctx) }()
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
				if n := in.contact.locked.Load(); n != 0 {
					t.Errorf("%d observations still count as waiting", n)
				}
			})
		})
	}
}
