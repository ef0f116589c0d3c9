package service_test

import (
	"net/http"
	"testing"
	"time"

	"motorpool/telematics"
)

// An instance that starts without its servers waits for them.
func TestStart_WithoutServersWaitsForThem(t *testing.T) {
	t.Parallel()
	s := frailStack(t, 1)
	fleet := s.drive(nil, healthy)
	s.must(s.mosquitto.Kill())
	s.must(s.redis.Kill())
	s.must(s.postgres.Kill())
	i := s.serveUnready()
	for _, check := range []string{"mqtt", "redis", "postgres"} {
		i.says(http.StatusServiceUnavailable, check)
	}
	i.control(1, telematics.Lock).wants(503, "telematics_unavailable", "not_executed")
	s.must(s.postgres.Restart())
	s.must(s.redis.Restart())
	s.must(s.mosquitto.Restart())
	s.eventually(30*time.Second, "ready", func() bool { status, _ := i.readiness(); return status == 200 })
	s.eventually(60*time.Second, "the car is connected", func() bool { return connected(fleet) })
	s.eventually(20*time.Second, "commands are executed", func() bool { return i.control(1, telematics.Lock).status == 200 })
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
		s.Fatalf("respond-async: %d %s, %v", async.status, async.text, async.header)
	}
	answered := make(chan answer, 1)
	go func() { answered <- i.control(2, telematics.Lock) }()
	s.eventually(5*time.Second, "both commands are sent", func() bool { return i.metric("motorpool_publications_total") >= 2 })
	i.stop()
	(<-answered).wants(200)
	other.get(async.header.Get("Location"), nil).wants(200).has("data.state", `"succeeded"`, "data.late", "false")
}
