package service_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/simulator/devstack"
	"motorpool/store/redis"
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

// Who has the password of Redis cannot declare the primary a former one.
func TestTwoPrimaries_RedisAloneCannotClaimANewerOne(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	first := s.serve()
	s.drive(nil, healthy)
	s.eventually(30*time.Second, "locked", func() bool { return first.control(1, telematics.Lock).status == http.StatusOK })
	var system string
	s.must(s.owner.Pool.Get(&system, `select system_identifier::text from pg_control_system()`))
	shared, err := redis.New(redis.Config{URL: s.redisURL})
	s.must(err)
	t.Cleanup(func() { _ = shared.Close() })
	signed := func() string {
		return shared.Client.HGet(t.Context(), "motorpool:postgres", "signed").Val()
	}
	var mine string
	s.eventually(10*time.Second, "the line is shared", func() bool { mine = signed(); return mine != "" })

	_, mac, _ := strings.Cut(strings.TrimPrefix(mine, system+" "), " ")
	s.must(shared.Client.HSet(t.Context(), "motorpool:postgres", "system", system, "timeline", 999, "signed", system+" 999 "+mac).Err())
	s.eventually(10*time.Second, "the instance has seen it", func() bool { return signed() == mine })
	for _, i := range []*instance{first, s.serve()} {
		i.says(http.StatusOK, "ready")
		s.eventually(10*time.Second, "a command", func() bool { return i.control(1, telematics.Unlock).status == http.StatusOK })
	}
	var marks int
	s.must(s.owner.Pool.Get(&marks, `select count(*) from settings where name like 'postgres_timeline %'`))
	if marks != 0 {
		t.Errorf("the primary has %d marks, want none", marks)
	}
}
