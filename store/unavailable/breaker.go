package unavailable

import (
	"log/slog"
	"sync"
	"time"
)

// RetryAfter is how long an open breaker waits between two requests: a frozen server must not delay
// every request.
const RetryAfter = time.Second

// Breaker is the circuit breaker of a server that the service can do without for a while. It is
// closed while the server serves, and open from a failure until the next success. It is safe for
// concurrent use.
type Breaker struct {
	Opened, Closed string // the effect, for log messages
	Log            *slog.Logger
	Now            func() time.Time // Defaults to time.Now

	mu        sync.Mutex
	openSince time.Time // zero: the breaker is closed
	nextTry   time.Time
	missed    int // requests that were not allowed, or failed
}

func (b *Breaker) time() time.Time {
	if b.Now == nil {
		return time.Now()
	}
	return b.Now()
}

// Allow reports whether a request may be made: always while the breaker is closed, and once per
// [RetryAfter] while it is open.
func (b *Breaker) Allow() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.openSince.IsZero() {
		return true
	}
	if now := b.time(); !now.Before(b.nextTry) {
		b.nextTry = now.Add(RetryAfter)
		return true
	}
	b.missed++
	return false
}

// IsOpen reports whether the latest recorded result is a failure.
func (b *Breaker) IsOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.openSince.IsZero()
}

// Record records the result of a request; nil: success. Opening and closing are logged once each.
func (b *Breaker) Record(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.time()
	switch {
	case err == nil && !b.openSince.IsZero():
		b.Log.Info("server available again", "effect", b.Closed, "missed", b.missed, "unavailable_for", now.Sub(b.openSince))
		b.openSince, b.missed = time.Time{}, 0
	case err != nil && b.openSince.IsZero():
		b.Log.Warn("server unavailable", "effect", b.Opened, "err", err)
		b.openSince = now
		fallthrough
	case err != nil:
		b.nextTry = now.Add(RetryAfter)
		b.missed++
	}
}
