package app

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"

	"motorpool/guard"
	"motorpool/httpapi/health"
	"motorpool/store/pg"
)

// stopping keeps an instance serving for a while after it was asked to stop, so that load balancers
// take it out before its listeners close.
type stopping struct {
	*service
	closing atomic.Bool
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
	whole := s.config.Drain
	if whole == 0 || never {
		return
	}
	s.log.Info("draining", "for", whole)
	guard.Pause(serving, whole/2)
	s.closing.Store(true)
	guard.Pause(serving, whole-whole/2)
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
