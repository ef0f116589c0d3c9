package service_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"motorpool/internal/metricstest"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// statusView has the fields of a status that these tests compare.
type statusView struct {
	Telemetry struct {
		SpeedKmh  *float64 `json:"speed_kmh"`
		MileageKm *float64 `json:"mileage_km"`
		Ignition  *string  `json:"ignition"`
		Gear      *string  `json:"gear"`
		IsLocked  *bool    `json:"is_locked"`
	}
	Diagnostics struct {
		DTCs []string `json:"dtcs"`
	}
}

// Each report reaches the service through the MQTT broker, like those of units. The test reads the
// resulting status over HTTP, and the counters of dropped fields by reason.
func TestReport_IsReadOverHTTPAndDropsAreCounted(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	i := s.serve()
	base := time.Now().UTC().Truncate(time.Millisecond).Add(-time.Minute)
	at := func(after time.Duration) string { return base.Add(after).Format(time.RFC3339Nano) }
	var future time.Time // when the report with a future date was sent
	for _, step := range []struct {
		name, report string
		want         string // the status: speed, mileage, ignition, gear, locked, codes
		dropped      metricstest.Values
	}{
		{name: "a full report",
			report: `{"at":"` + at(10*time.Second) + `","telemetry":{"speed_kmh":50,"mileage_km":1000,"ignition":"on",` +
				`"gear":"D","is_locked":false},"diagnostics":{"dtcs":["P0420"]}}`,
			want: `[50 1000 on D false [P0420]]`},
		{name: "out of order: only fields without a newer value count",
			report: `{"at":"` + at(5*time.Second) + `","telemetry":{"speed_kmh":90,"gear":"R"},"diagnostics":{"dtcs":[]}}`,
			want:   `[50 1000 on D false [P0420]]`},
		{name: "partial: absent fields stay, null removes the value",
			report: `{"at":"` + at(20*time.Second) + `","telemetry":{"speed_kmh":30,"gear":null}}`,
			want:   `[30 1000 on <nil> false [P0420]]`},
		{name: "invalid fields: the valid ones count",
			report: `{"at":"` + at(21*time.Second) + `","telemetry":{"speed_kmh":900,"mileage_km":"far",` +
				`"ignition":"maybe","gear":"N","is_locked":true}}`,
			want: `[30 1000 on N true [P0420]]`,
			dropped: metricstest.Values{
				`motorpool_report_fields_dropped_total{reason="out_of_range"}`: 1,
				`motorpool_report_fields_dropped_total{reason="wrong_type"}`:   1,
				`motorpool_report_fields_dropped_total{reason="unknown_word"}`: 1,
			}},
		{name: "malformed", report: `{"at":"` + at(30*time.Second) + `","telemetry":{"speed_kmh":1`,
			want:    `[30 1000 on N true [P0420]]`,
			dropped: metricstest.Values{`motorpool_dropped_total{kind="report", reason="malformed"}`: 1}},
		{name: "oversize",
			report: `{"at":"` + at(31*time.Second) + `","telemetry":{"speed_kmh":1},"x":"` +
				strings.Repeat("x", telematics.MaxMessage) + `"}`,
			want:    `[30 1000 on N true [P0420]]`,
			dropped: metricstest.Values{`motorpool_dropped_total{kind="report", reason="too_large"}`: 1}},
		{name: "more than five minutes ahead: dated by the arrival",
			report:  `{"at":"` + time.Now().Add(10*time.Minute).UTC().Format(time.RFC3339Nano) + `","telemetry":{"speed_kmh":7}}`,
			want:    `[7 1000 on N true [P0420]]`,
			dropped: metricstest.Values{`motorpool_report_fields_dropped_total{reason="wrong_time"}`: 1}},
		{name: "dated before the arrival of the future report, whose speed stays",
			report: `{"at":"` + at(40*time.Second) + `","telemetry":{"speed_kmh":8,"mileage_km":1001}}`,
			want:   `[7 1001 on N true [P0420]]`},
	} {
		before := i.metrics()
		if strings.HasPrefix(step.name, "more than") {
			future = time.Now()
		}
		s.whisper("car-1", v1.TelemetryChannel, []byte(step.report))
		s.eventually(
			10*time.Second, step.name+" is counted",
			func() bool { return i.metrics()["motorpool_reports_total"] == before["motorpool_reports_total"]+1 },
		)
		var got string
		var status statusView
		deadline := time.Now().Add(slower * 5 * time.Second)
		for ; got != step.want && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			status = statusView{}
			i.get("/api/v1/admin/vehicles/1/status", &status)
			got = status.row()
		}
		if step.dropped == nil {
			step.dropped = metricstest.Values{}
		}
		changed := dropped(before, i.metrics())
		deadline = time.Now().Add(slower * 5 * time.Second)
		for ; !maps.Equal(changed, step.dropped) && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			changed = dropped(before, i.metrics()) // counted shortly after the report
		}
		s.Logf("| %s | %s | %v |", step.name, got, changed)
		if got != step.want || !maps.Equal(changed, step.dropped) {
			s.Errorf("%s: status %s, want %s; counted %v, want %v", step.name, got, step.want, changed, step.dropped)
		}
	}
	meta := i.meta(i.get("/api/v1/admin/vehicles/1/status", nil))
	if at := meta.Sections["telemetry"]; at.Before(future.Add(-time.Second)) || at.After(time.Now()) {
		s.Errorf("the telemetry is dated %v, want the time of arrival, %v", at, future)
	}
}

// row returns the known values as text.
func (v statusView) row() string {
	t := v.Telemetry
	return fmt.Sprint(
		[]any{valueOf(t.SpeedKmh), valueOf(t.MileageKm), valueOf(t.Ignition), valueOf(t.Gear), valueOf(t.IsLocked), v.Diagnostics.DTCs},
	)
}

func valueOf[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

func TestPresence_DroppedMessagesAreCountedByReason(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	i := s.serve()
	say := func(text string) { s.whisper("car-1", v1.PresenceChannel, []byte(text)) }
	now := time.Now().UTC()
	say(`{"status":"online","session":"b","at":"` + now.Format(time.RFC3339Nano) + `"}`)
	s.eventually(
		10*time.Second, "the first presence is counted",
		func() bool { return i.metric("motorpool_presence_messages_total") == 1 },
	)
	// Another instance, which has not received that, judges what comes by its time.
	i.stop()
	i = s.serve()
	say(`{"status":"offline","session":"a"}`)
	say(`{"status":"standby","session":"a","at":"` + now.Add(-time.Minute).Format(time.RFC3339Nano) + `"}`)
	s.eventually(10*time.Second, "a last will of an old session and an outdated presence", func() bool {
		return i.metric(`motorpool_presence_ignored_total{reason="former_session"}`) == 1 &&
			i.metric(`motorpool_presence_ignored_total{reason="outdated"}`) == 1
	})
	say(`{"status":"online","session":"b","x":"` + strings.Repeat("x", telematics.MaxMessage) + `"}`)
	s.eventually(
		10*time.Second, "a presence that is too large",
		func() bool { return i.metric(`motorpool_dropped_total{kind="presence", reason="too_large"}`) == 1 },
	)
	var vehicles []struct{ Connectivity struct{ Status string } }
	if i.get("/api/v1/admin/vehicles?connectivity=online", &vehicles); len(vehicles) != 1 {
		s.Errorf("the online vehicles are %+v, want one", vehicles)
	}
}

// dropped returns how much each counter of dropped values has grown.
func dropped(before, after metricstest.Values) metricstest.Values {
	grown := metricstest.Values{}
	for sample, n := range after {
		name, _, _ := strings.Cut(sample, "{")
		switch name {
		case "motorpool_reports_total", "motorpool_reports_merged_total", "motorpool_events_published_total":
		default:
			if strings.HasPrefix(name, "motorpool_") && strings.HasSuffix(name, "_total") && n != before[sample] {
				grown[sample] = n - before[sample]
			}
		}
	}
	return grown
}
