package service_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/store/pg"
)

// refused runs an instance until it ends, and returns the error.
func (s *stack) refused(config app.Config) error {
	s.Helper()
	listeners, err := config.Listen()
	s.must(err)
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- app.Serve(ctx, config, listeners, s.log) }()
	for { // until it ends it must not become ready
		select {
		case err := <-ended:
			if ctx.Err() != nil {
				s.Error("the service did not end")
			}
			return err
		case <-time.After(20 * time.Millisecond):
		}
		response, err := http.Get("http://" + listeners.Internal.Addr().String() + "/readyz")
		if err != nil {
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode == http.StatusOK {
			s.Error("the service was ready")
		}
	}
}

func TestServe_RefusesAPostgresThatMayLoseCommits(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1) // on a server without fsync
	for _, migrate := range []bool{true, false} {
		config := s.config()
		config.AllowUnsafePostgres, config.Migrate = false, migrate
		// The instance accepted no request, so it does not wait for a load balancer.
		config.Drain = 70 * time.Second
		if err := s.refused(config); !errors.Is(err, pg.ErrUnsuitable) || !strings.Contains(err.Error(), "fsync=off") ||
			!strings.Contains(err.Error(), "--allow-unsafe-postgres") {
			t.Errorf("Serve = %v, want ErrUnsuitable for fsync=off", err)
		}
	}
}
