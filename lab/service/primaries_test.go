package service_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// A standby is promoted while the former primary runs on, as it does where its supervisor has
// started it again. One instance reaches both, the other one the former primary alone.
func TestTwoPrimaries_TheFormerOneIsNotWrittenTo(t *testing.T) {
	t.Parallel()
	s := frailStack(t, 1)
	former := s.serve()
	s.drive(nil, healthy)
	s.eventually(30*time.Second, "locked", func() bool { return former.control(1, telematics.Lock).status == http.StatusOK })
	promoted, err := s.postgres.StartStandby(t.Context(), devstack.StandbyConfig{Dir: filepath.Join(s.dir, "standby")})
	s.must(err)
	t.Cleanup(func() { _ = promoted.Discard() })
	s.must(promoted.InSync(t.Context(), s.postgres))
	s.must(promoted.Promote(t.Context()))

	both := s.serve(func(c *app.Config) { c.DatabaseURL = app.Secret(s.postgres.URLWith(promoted)) })
	s.eventually(
		10*time.Second, "the former primary is counted",
		func() bool { return both.metric("motorpool_postgres_former_primaries") == 1 },
	)
	s.eventually(10*time.Second, "the instance at the former primary is not ready, and says why", func() bool {
		status, why := former.readiness()
		return status == http.StatusServiceUnavailable &&
			strings.Contains(why, "not the primary of this installation any more: it has timeline 1")
	})
	former.control(1, telematics.Unlock).wants(http.StatusServiceUnavailable)
	both.control(1, telematics.Lock).wants(http.StatusOK)
}
