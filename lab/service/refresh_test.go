package service_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/simulator"
	"motorpool/telematics"
)

const refresh1 = "/api/v1/admin/vehicles/1/status?refresh=true"

// statusMeta is the meta object of a status.
type statusMeta struct {
	Source   string
	Sections map[string]time.Time
}

func (i *instance) meta(r reply) statusMeta {
	i.Helper()
	var meta statusMeta
	i.must(json.Unmarshal(r.Meta, &meta))
	return meta
}

// quiet makes the cars report only once after they connect and when the service asks them, and
// waits for the first report.
func (i *instance) quiet(profile func(telematics.VehicleID) simulator.Profile) statusMeta {
	i.Helper()
	i.interval = time.Hour
	i.drive(nil, profile)
	var meta statusMeta
	i.eventually(20*time.Second, "the car has reported", func() bool {
		meta = i.meta(i.get("/api/v1/admin/vehicles/1/status", nil))
		return !meta.Sections["telemetry"].IsZero()
	})
	return meta
}

func TestRefresh_ReturnsWhatTheUnitReports(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	i, other := s.serve(), s.serve()
	before := i.quiet(healthy)
	for _, instance := range []*instance{i, other, i} {
		r := instance.get(refresh1, nil)
		meta := i.meta(r)
		if r.status != 200 || meta.Source != "live" || !meta.Sections["telemetry"].After(before.Sections["telemetry"]) ||
			!meta.Sections["location"].After(before.Sections["location"]) {
			s.Fatalf("refresh: %d %+v: meta %+v, before %+v", r.status, r.Error, meta, before)
		}
		cached := i.meta(other.get("/api/v1/admin/vehicles/1/status", nil))
		if cached.Source != "cache" || cached.Sections["telemetry"].Before(meta.Sections["telemetry"]) {
			s.Errorf("directly after the refresh another instance has %+v, want at least %+v", cached, meta)
		}
		before = meta
	}
	var lines []struct{ Action, Outcome string }
	i.get("/api/v1/admin/activity?vehicle_id=1&action=command.report-state", &lines)
	if len(lines) != 3 || lines[0].Outcome != "executed" {
		s.Errorf("audit entries of the commands %+v", lines)
	}
}

func TestRefresh_OneAtATime(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	i, other := s.serve(), s.serve()
	before := i.quiet(slow(2 * time.Second))
	var first reply
	var caller sync.WaitGroup
	caller.Go(func() { first = i.get(refresh1, nil) })
	var open []command
	i.eventually(5*time.Second, "the refresh is in flight", func() bool {
		i.get("/api/v1/admin/vehicles/1/commands", &open)
		return len(open) == 1
	})
	second := other.get(refresh1, nil)
	if second.status != 409 || second.Error.Code != "command_in_progress" || second.Error.Outcome != "not_executed" ||
		second.Error.CommandID != open[0].ID ||
		second.retryAfter == "" {
		s.Errorf("a second refresh: %d %+v, Retry-After %q", second.status, second.Error, second.retryAfter)
	}
	if r := other.control(1, telematics.Lock, "Prefer", "respond-async"); r.status != 202 {
		s.Errorf("a command of another lane during the refresh: %d %+v, want 202", r.status, r.Error)
	}
	caller.Wait()
	if meta := i.meta(first); first.status != 200 || meta.Source != "live" ||
		!meta.Sections["telemetry"].After(before.Sections["telemetry"]) {
		s.Errorf("the first refresh: %d %+v", first.status, meta)
	}
}

func TestRefresh_SilentUnitTimesOutAndKeepsTheLastState(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	i := s.serve()
	before := i.quiet(func(id telematics.VehicleID) simulator.Profile {
		p := healthy(id)
		p.Faults.Silent = true
		return p
	})
	r := i.do(http.MethodGet, refresh1, "Prefer", "wait=1")
	if r.status != 504 || r.Error.Code != "command_timeout" || r.Error.Outcome != "unknown" || r.Error.CommandID == "" ||
		r.retryAfter != "10" ||
		r.took > 9*time.Second {
		s.Errorf("refresh: %d %+v after %v, Retry-After %q", r.status, r.Error, r.took, r.retryAfter)
	}
	if meta := i.meta(i.get("/api/v1/admin/vehicles/1/status", nil)); meta.Source != "cache" ||
		!meta.Sections["telemetry"].Equal(before.Sections["telemetry"]) {
		s.Errorf("the latest known state: %+v, want %+v", meta, before)
	}
	var lines []struct{ Action, Outcome, Code string }
	i.get("/api/v1/admin/activity?vehicle_id=1&outcome=not_executed&action=status.read", &lines)
	if len(lines) != 1 || lines[0].Code != "command_timeout" {
		s.Errorf("audit entries of failed reads: %+v", lines)
	}
	i.get("/api/v1/admin/activity?vehicle_id=1&action=command.report-state", &lines)
	if len(lines) != 1 || lines[0].Outcome != "unknown" || lines[0].Code != "command_timeout" {
		s.Errorf("audit entries of commands: %+v", lines)
	}
}

func TestRefresh_ContinuesWhenTheCallerDisconnects(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	i := s.serve()
	before := i.quiet(slow(time.Second))
	ctx, hangUp := context.WithCancel(s.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, i.base+refresh1, nil)
	s.must(err)
	request.Header.Set("Authorization", "Bearer "+i.admin)
	var caller sync.WaitGroup
	caller.Go(func() {
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
			s.Errorf("the cancelled request got the status %d", response.StatusCode)
		}
	})
	var commands []command
	s.eventually(5*time.Second, "the refresh is in flight", func() bool {
		i.get("/api/v1/admin/vehicles/1/commands", &commands)
		return len(commands) == 1
	})
	hangUp()
	caller.Wait()
	s.eventually(10*time.Second, "the report of the unit is still merged", func() bool {
		return i.meta(i.get("/api/v1/admin/vehicles/1/status", nil)).Sections["telemetry"].After(before.Sections["telemetry"])
	})
}

func TestRefresh_LimitIsSharedByInstances(t *testing.T) {
	t.Parallel()
	const attempts = 6
	s := startStack(t, 2*attempts)
	limited := func(c *app.Config) { c.RefreshRate = 2 }
	instances := []*instance{s.serve(limited), s.serve(limited)}
	instances[0].quiet(healthy)
	for n := range attempts {
		if instances[0].refreshesAreLimited(instances[1], 2*n+1, 2*n+2) {
			return
		}
	}
	s.Error("the machine was too slow for the limit in every attempt")
}

// refreshesAreLimited refreshes two vehicles. It returns false if the result is not valid, because
// Redis did not count a request in time or the limit was restored in between, as happens on a busy
// machine.
func (i *instance) refreshesAreLimited(other *instance, vehicle, second int) bool {
	i.Helper()
	began := time.Now()
	uncounted := func(r reply) bool { return r.starved() || r.header.Get("RateLimit-Limit") == "" }
	status := func(vehicle int) string { return fmt.Sprintf("/api/v1/admin/vehicles/%d/status", vehicle) }
	refresh := func(vehicle int) string { return status(vehicle) + "?refresh=true" }
	for n, at := range []*instance{i, other} {
		r := at.get(refresh(vehicle), nil)
		if uncounted(r) {
			return false
		}
		if r.status != 200 {
			i.Fatalf("refresh %d: %d %+v", n+1, r.status, r.Error)
		}
	}
	r := i.get(refresh(vehicle), nil)
	if uncounted(r) || time.Since(began) > 30*time.Second {
		return false
	}
	if r.status != 429 || r.Error.Code != "rate_limited" || r.Error.Outcome != "not_executed" || r.retryAfter == "" ||
		r.header.Get("RateLimit-Limit") != "2" {
		i.Errorf("the third refresh: %d %+v, headers %v", r.status, r.Error, r.header)
	}
	if r := other.get(refresh(second), nil); r.status != 200 && !r.starved() {
		i.Errorf("another vehicle: %d %+v", r.status, r.Error)
	}
	if r := other.get(status(vehicle), nil); r.status != 200 {
		i.Errorf("a plain read: %d %+v", r.status, r.Error)
	}
	return true
}
