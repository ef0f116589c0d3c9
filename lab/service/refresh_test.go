package service_test

import (
	"encoding/json"
	"testing"
	"time"
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
func (i *instance) quiet() statusMeta {
	i.Helper()
	i.interval = time.Hour
	i.drive(nil, healthy)
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
	before := i.quiet()
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
	var lines []struct{ Action string }
	i.get("/api/v1/admin/activity?vehicle_id=1&action=command.report-state&outcome=executed", &lines)
	if len(lines) != 3 {
		s.Errorf("audit entries of the commands %+v", lines)
	}
}
