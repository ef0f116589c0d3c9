package service_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/broker"
	"motorpool/telematics"
)

const haltsPath = "/api/v1/admin/halts"

// The halt must work when only the database does.
func TestHalt_ThroughTheServiceHoldsWhileRedisAndMQTTAreUnavailable(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	instances := []*instance{s.serve(), s.serve()}
	fleet := s.drive(nil, healthy)
	s.must(s.redis.Pause()) // frozen: every call to it waits
	s.must(s.mosquitto.Kill())

	begun := time.Now()
	r := instances[0].askWith(instances[0].admin, http.MethodPut, haltsPath, `{"reason":"recall of the locks","agency_id":null}`)
	// A request that waits for Redis or for MQTT does not end before they are back.
	if took := time.Since(begun); r.status != 200 || took > slower*(broker.HaltWithin+4*time.Second) {
		t.Fatalf("PUT: %d %s after %v, want 200 within the limit", r.status, r.text, took)
	}
	for _, i := range instances {
		if r := i.askWith(i.admin, http.MethodGet, haltsPath, ""); r.status != 200 || r.body["message"] != "1 halt." {
			t.Errorf("GET: %d %s, want one halt", r.status, r.text)
		}
	}
	s.must(s.redis.Resume())
	s.must(s.mosquitto.Restart())
	s.eventually(60*time.Second, "the car is connected again", func() bool { return connected(fleet) })
	for _, i := range instances {
		s.eventually(30*time.Second, "commands are refused only because of the halt", func() bool {
			r := i.control(1, telematics.Lock)
			if r.status == 200 {
				t.Fatal("a command was sent during a halt")
			}
			return r.code() == "commands_halted" && strings.Contains(r.word("message"), "recall of the locks")
		})
	}
	instances[1].askWith(instances[1].admin, http.MethodDelete, haltsPath, "").wants(200, "")
	s.eventually(
		20*time.Second, "commands are executed again",
		func() bool { return instances[0].control(1, telematics.Lock).status == 200 },
	)
}
