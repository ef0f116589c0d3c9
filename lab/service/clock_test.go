package service_test

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/telematics"
)

// An instance with a wrong clock signs no command and consumes no message of the MQTT broker:
// another instance gets every answer. [LAW-11]
func TestInstance_WrongClockLeavesTheWorkToOthers(t *testing.T) {
	t.Parallel()
	s := realStack(t, 2)
	db := s.owner.Pool
	// The instance whose search path begins with public reads another clock of Postgres than the
	// others.
	for _, statement := range []string{
		`create table clock (ahead interval not null)`,
		`insert into clock values ('0')`,
		`create function public.clock_timestamp() returns timestamptz language sql volatile as
			'select pg_catalog.clock_timestamp() + ahead from public.clock'`,
	} {
		_, err := db.Exec(statement)
		s.must(err)
	}
	shifted, err := url.Parse(s.database)
	s.must(err)
	query := shifted.Query()
	query.Set("search_path", "public,pg_catalog")
	shifted.RawQuery = query.Encode()

	right := s.serve()
	wrong := s.serve(func(c *app.Config) { c.DatabaseURL = app.Secret(shifted.String()) })
	s.drive(nil, healthy)
	wrong.control(1, telematics.Lock).wants(200)
	// The error of the clock of Postgres.
	for _, ahead := range []string{"-250 seconds", "40 seconds"} {
		_, err = db.Exec(`update clock set ahead = $1::interval`, ahead)
		s.must(err)
		sent := wrong.metric("motorpool_publications_total")
		r := wrong.controlOnce(1, telematics.Unlock) // before or after it has detected the error
		if r.status != 503 || r.Error.Code != "telematics_unavailable" || r.Error.Outcome != "not_executed" || r.retryAfter != "5" {
			t.Errorf("%s: %d %+v, Retry-After %q", ahead, r.status, r.Error, r.retryAfter)
		}
		s.eventually(20*time.Second, "not ready", func() bool {
			status, says := wrong.readiness()
			return status == 503 && strings.Contains(says, "clock") && strings.Contains(says, "not connected to the MQTT broker")
		})
		taken := wrong.metric("motorpool_answers_total")
		for range 20 {
			right.control(2, telematics.Lock).wants(200)
		}
		if now := wrong.metric("motorpool_answers_total"); now != taken || wrong.metric("motorpool_publications_total") != sent {
			t.Errorf(
				"%s: the wrong instance took %d answers and published %d messages", ahead, now-taken,
				wrong.metric("motorpool_publications_total")-sent,
			)
		}
		_, err = db.Exec(`update clock set ahead = '0'`)
		s.must(err)
		s.eventually(20*time.Second, "ready again", func() bool { status, _ := wrong.readiness(); return status == 200 })
		wrong.control(1, telematics.Lock).wants(200)
	}
	assert.Equal(t, wrong.metric("motorpool_clock_wrong_total"), 2, "clock_wrong")
}
