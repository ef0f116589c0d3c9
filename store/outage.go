package store

import (
	"log/slog"
	"sync"
	"time"
)

// holdOff is how long a server is not asked after it failed: a frozen one must not delay
// every request.
const holdOff = time.Second

// outage is what is known of a server that one can do without for a while. It is safe for
// concurrent use.
type outage struct {
	begins, ends string // in the log
	log          *slog.Logger
	now          func() time.Time // Defaults to time.Now

	mu      sync.Mutex
	since   time.Time // zero: the server serves
	nextAsk time.Time
	missed  int // requests that were not made, or failed
}

func (o *outage) time() time.Time {
	if o.now == nil {
		return time.Now()
	}
	return o.now()
}

// mayAsk lets everybody through while the server serves, and then one in a while, to see
// whether it is back.
func (o *outage) mayAsk() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.since.IsZero() {
		return true
	}
	if now := o.time(); !now.Before(o.nextAsk) {
		o.nextAsk = now.Add(holdOff)
		return true
	}
	o.missed++
	return false
}

// isOn reports whether the server failed, and has not served since.
func (o *outage) isOn() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero()
}

// learn notes whether the server served. An outage is logged once, and its end.
func (o *outage) learn(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.time()
	switch {
	case err == nil && !o.since.IsZero():
		o.log.Info("asked again", "so", o.ends, "missed", o.missed, "away", now.Sub(o.since).Round(time.Millisecond))
		o.since, o.missed = time.Time{}, 0
	case err != nil && o.since.IsZero():
		o.log.Warn("not asked for a while", "so", o.begins, "err", err)
		o.since = now
		fallthrough
	case err != nil:
		o.nextAsk = now.Add(holdOff)
		o.missed++
	}
}
