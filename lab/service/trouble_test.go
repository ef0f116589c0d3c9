package service_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

// While a server is unavailable, commands are clearly refused; when it is available again, they
// work. An instance that starts without its servers waits for them.
func TestServers_ServiceRecoversWithoutARestart(t *testing.T) {
	t.Parallel()
	s := frailStack(t, 1)
	i := s.serve()
	fleet := s.drive(nil, healthy)
	for _, trouble := range []struct {
		name, check string // the check that fails
		away, back  func() error
	}{
		{"without MQTT", "mqtt", s.mosquitto.Kill, s.mosquitto.Restart},
		{"without Redis", "redis", s.redis.Kill, s.redis.Restart},
		{"without Postgres", "postgres", s.postgres.Kill, s.postgres.Restart},
		{"with a frozen Postgres", "postgres", s.postgres.Pause, s.postgres.Resume},
	} {
		sent := i.metric("motorpool_publications_total")
		s.must(trouble.away())
		s.eventually(20*time.Second, "not ready "+trouble.name, func() bool {
			status, says := i.readiness()
			return status == http.StatusServiceUnavailable && strings.Contains(says, trouble.check)
		})
		r := i.controlOnce(1, telematics.Lock)
		if r.status != 503 || r.Error.Code != "telematics_unavailable" || r.Error.Outcome != "not_executed" || r.retryAfter != "5" {
			t.Errorf("%s: %d %+v, Retry-After %q", trouble.name, r.status, r.Error, r.retryAfter)
		}
		if n := i.metric("motorpool_publications_total"); n != sent {
			t.Errorf("%s: %d messages were published", trouble.name, n-sent)
		}
		s.must(trouble.back())
		i.works(fleet, "after it was "+trouble.name)
	}

	i.stop()
	s.must(s.mosquitto.Kill())
	s.must(s.redis.Kill())
	s.must(s.postgres.Kill())
	i = s.serveUnready()
	for _, check := range []string{"mqtt", "redis", "postgres"} {
		i.says(http.StatusServiceUnavailable, check)
	}
	i.controlOnce(1, telematics.Lock).wants(503, "telematics_unavailable")
	s.must(s.postgres.Restart())
	s.must(s.redis.Restart())
	s.must(s.mosquitto.Restart())
	i.works(fleet, "after a start without servers")
}

// works waits until commands are executed again.
func (i *instance) works(fleet *simulator.Fleet, when string) {
	i.Helper()
	i.eventually(30*time.Second, "ready "+when, func() bool { status, _ := i.readiness(); return status == 200 })
	i.eventually(60*time.Second, "the car is connected "+when, func() bool { return connected(fleet) })
	i.eventually(20*time.Second, "commands are executed "+when, func() bool { return i.control(1, telematics.Lock).status == 200 })
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
	for n := range 12 {
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

// What is in flight when an instance stops gets its answer, whether its caller waits or not.
func TestStop_WaitsForOpenCommands(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 2)
	i, other := s.serve(), s.serve()
	s.drive(nil, slow(2*time.Second))
	async := i.control(1, telematics.Lock, "Prefer", "respond-async, wait=20")
	if async.status != 202 || async.header.Get("Preference-Applied") != "respond-async, wait=20" {
		s.Fatalf("respond-async: %d %+v, %v", async.status, async.Error, async.header)
	}
	answered := make(chan reply, 1)
	go func() { answered <- i.control(2, telematics.Lock) }()
	s.eventually(5*time.Second, "both commands are sent", func() bool { return i.metric("motorpool_publications_total") >= 2 })
	i.stop()
	(<-answered).wants(200)
	var c command
	if other.get(async.header.Get("Location"), &c); c.State != "succeeded" || c.Late {
		s.Errorf("after the instance stopped the command is %+v, want succeeded", c)
	}
}
