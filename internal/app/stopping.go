package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"motorpool/guard"
	"motorpool/httpapi/health"
	"motorpool/store/pg"
)

// stopping keeps an instance serving for a while after it was asked to stop, so that load balancers
// take it out before its listeners close.
type stopping struct {
	drain   time.Duration
	log     *slog.Logger
	panics  *guard.Guard
	closing atomic.Bool
}

func newStopping(drain time.Duration, panics *guard.Guard, log *slog.Logger) *stopping {
	return &stopping{drain: drain, panics: panics, log: log}
}

// after returns a context that ends after ctx, by the length of the drain. The returned function
// ends it earlier.
func (s *stopping) after(ctx context.Context, ready *health.Readiness) (context.Context, context.CancelFunc) {
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, func() {
		defer stop()
		_ = s.panics.Do("drain", func() { s.serveOn(serving, ready, errors.Is(context.Cause(ctx), pg.ErrUnsuitable)) })
	})
	return serving, func() { release(); stop() }
}

// serveOn serves on while load balancers take the instance out; not where it was never ready.
func (s *stopping) serveOn(serving context.Context, ready *health.Readiness, never bool) {
	ready.Drain()
	if s.drain == 0 || never {
		return
	}
	s.log.Info("draining", "for", s.drain)
	guard.Pause(serving, s.drain/2)
	s.closing.Store(true)
	guard.Pause(serving, s.drain-s.drain/2)
}

// closeConnections closes keep-alive connections with their next response, in the second half of
// the drain: otherwise a client may send its next request on a connection that is being closed.
func (s *stopping) closeConnections(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.closing.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}
