package service_test

import (
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/telematics"
)

func limited(c *app.Config) { c.VehicleRate, c.AdminRate = 10, 600 }

func TestLimit_EleventhCommandOfAMinuteIsRefusedByEveryInstance(t *testing.T) {
	t.Parallel()
	s := startStack(t, 2)
	instances := []*instance{s.serve(limited), s.serve(limited)}
	s.drive(nil, healthy)
	var passed, uncertain int
	var refusal reply
	begin := time.Now()
	for calls := 0; refusal.status == 0; calls++ {
		r := instances[calls%2].control(1, telematics.Lock)
		switch {
		case r.status == 429:
			refusal = r
		case r.status != 200 || calls > 300:
			s.Fatalf("call %d: %d %+v", calls+1, r.status, r.Error)
		case r.header.Get("RateLimit-Limit") == "10":
			passed++
		default: // Redis was slow on a busy machine and may have counted the request
			uncertain++
		}
	}
	// The allowance grows by one command in 6 s.
	if most := 10 + int(time.Since(begin)/(6*time.Second)); passed > most || passed+uncertain < 10 {
		s.Errorf("%d commands passed, and %d while Redis was slow; want 10 to %d", passed, uncertain, most)
	}
	for _, i := range instances {
		r := i.control(1, telematics.Unlock)
		h := r.header
		if r.status != 429 || r.Error.Code != "rate_limited" || r.Error.Outcome != "not_executed" || r.retryAfter == "" ||
			r.retryAfter != h.Get("RateLimit-Reset") ||
			h.Get("RateLimit-Limit") != "10" ||
			h.Get("RateLimit-Remaining") != "0" {
			s.Errorf("over the limit: %d %+v, headers %v", r.status, r.Error, h)
		}
	}
	instances[0].control(2, telematics.Lock).wants(200)
	var lines []struct{ Code string }
	instances[1].get("/api/v1/admin/activity?vehicle_id=1&outcome=not_executed", &lines)
	if len(lines) != 3 || lines[0].Code != "rate_limited" {
		s.Errorf("audit entries %+v, want three refusals", lines)
	}
	wait, err := time.ParseDuration(refusal.retryAfter + "s")
	s.must(err)
	if wait > 6*time.Second {
		s.Errorf("Retry-After is %v, want at most 6s", wait)
	}
}
