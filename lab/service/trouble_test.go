package service_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
)

// While a server is unavailable, commands are clearly refused; when it is available again, they
// work.
func TestServers_ServiceRecoversWithoutARestart(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		check string // the check that fails
		away  func(*stack)
		back  func(*stack)
	}{
		{"mqtt", func(s *stack) { s.must(s.mosquitto.Kill()) }, func(s *stack) { s.must(s.mosquitto.Restart()) }},
		{"redis", func(s *stack) { s.must(s.redis.Kill()) }, func(s *stack) { s.must(s.redis.Restart()) }},
		{"postgres", func(s *stack) { s.must(s.postgres.Kill()) }, func(s *stack) { s.must(s.postgres.Restart()) }},
		{"postgres", func(s *stack) { s.must(s.postgres.Pause()) }, func(s *stack) { s.must(s.postgres.Resume()) }},
	} {
		t.Run(test.check, func(t *testing.T) {
			t.Parallel()
			s := frailStack(t, 1)
			i := s.serve()
			fleet := s.drive(nil, healthy)
			sent := i.metric("motorpool_publications_total")

			test.away(s)
			s.eventually(20*time.Second, "not ready", func() bool {
				status, says := i.readiness()
				return status == http.StatusServiceUnavailable && strings.Contains(says, test.check)
			})
			r := i.controlOnce(1, telematics.Lock)
			if r.status != 503 || r.Error.Code != "telematics_unavailable" || r.Error.Outcome != "not_executed" || r.retryAfter != "5" {
				t.Errorf("without %s: %d %+v, Retry-After %q", test.check, r.status, r.Error, r.retryAfter)
			}
			if n := i.metric("motorpool_publications_total"); n != sent {
				t.Errorf("%d messages were published without %s", n-sent, test.check)
			}

			test.back(s)
			s.eventually(30*time.Second, "ready again", func() bool { status, _ := i.readiness(); return status == 200 })
			s.eventually(60*time.Second, "the car is connected again", func() bool { return connected(fleet) })
			s.eventually(20*time.Second, "commands are executed again", func() bool { return i.control(1, telematics.Lock).status == 200 })
		})
	}
}

func TestStart_WaitsForUnavailableServers(t *testing.T) {
	t.Parallel()
	s := frailStack(t, 1)
	s.must(s.mosquitto.Kill())
	s.must(s.redis.Kill())
	s.must(s.postgres.Kill())
	i := s.serveUnready()
	for _, check := range []string{"mqtt", "redis", "postgres"} {
		i.says(http.StatusServiceUnavailable, check)
	}
	i.controlOnce(1, telematics.Lock).wants(503, "telematics_unavailable")
	s.must(s.postgres.Restart())
	s.must(s.redis.Restart())
	s.must(s.mosquitto.Restart())
	s.eventually(30*time.Second, "ready", func() bool { status, _ := i.readiness(); return status == 200 })
	s.drive(nil, healthy)
	i.control(1, telematics.Lock).wants(200)
}

// Instances of the previous version still run, and this instance would share the answers of the
// fleet with them.
func TestStart_ConsumesNoMessagesBeforeTheSchemaIsMigrated(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 4)
	running := s.serve()
	db := s.owner.Pool
	var version int64
	s.must(db.QueryRow(`delete from goose_db_version
		where version_id = (select max(version_id) from goose_db_version) returning version_id`).Scan(&version))
	early := s.serveUnready()
	s.drive(nil, healthy)
	for n := range 40 {
		running.control(n%4+1, telematics.Lock).wants(200)
	}
	if answers, reports := early.metric("motorpool_answers_total"), early.metric("motorpool_reports_total"); answers+reports != 0 {
		t.Errorf("the instance without its schema consumed %d answers and %d reports, want none", answers, reports)
	}
	early.says(http.StatusServiceUnavailable, "schema")
	_, err := db.Exec(`insert into goose_db_version (version_id, is_applied) values ($1, true)`, version)
	s.must(err)
	s.eventually(10*time.Second, "ready with its schema", func() bool { status, _ := early.readiness(); return status == 200 })
}

func TestStop_WaitsForOpenCalls(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	i := s.serve()
	s.drive(nil, slow(2*time.Second))
	answered := make(chan reply, 1)
	go func() { answered <- i.control(1, telematics.Lock) }()
	s.eventually(5*time.Second, "the command was sent", func() bool { return i.metric("motorpool_publications_total") >= 1 })
	i.stop()
	(<-answered).wants(200)
}
