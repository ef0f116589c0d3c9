package brokertest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// deliveryDoesNotMatter: reports of one vehicle reach two instances in any order, number and
// batches. Unlike orderDoesNotMatter, it makes one call at a time, so that rapid can reproduce a
// failure and shrink it.
func deliveryDoesNotMatter(t *testing.T, r TwinRecord) {
	rapid.Check(t, func(t *rapid.T) {
		id, unit := r.Vehicle()
		reports := rapid.SliceOfN(rapid.Custom(drawReport), 1, 6).Draw(t, "reports")
		again := rapid.SliceOfN(rapid.SampledFrom(reports), 0, 6).Draw(t, "again")
		deliveries := rapid.Permutation(slices.Concat(reports, again)).Draw(t, "deliveries")
		instances := map[string]Observer{"here": r.Here, "there": r.There}
		for rest := deliveries; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "batch")
			var batch []delivery.Observation
			for _, report := range rest[:n] {
				batch = append(batch, delivery.Observation{Unit: unit, At: instant, Report: &report})
			}
			rest = rest[n:]
			at := rapid.SampledFrom([]string{"here", "there"}).Draw(t, "instance")
			if seen, err := instances[at].Observe(t.Context(), batch); err != nil || len(seen.Unknown) > 0 {
				t.Fatalf("Observe = %v, %v", seen.Unknown, err)
			}
		}
		var want telematics.Snapshot
		for _, report := range reports {
			want = telematics.Merge(want, report)
		}
		wantSnapshot(t, r.Twin(id).Snapshot, want)
	})
}

// drawReport draws a report from few times and values, so that many reports have the same time. The
// values include null, a list, an object and data of the manufacturer.
func drawReport(t *rapid.T) telematics.Report {
	pick := func(values ...string) string { return rapid.SampledFrom(values).Draw(t, "value") }
	message := fmt.Sprintf(`{"at":%q,"telemetry":{"speed_kmh":%s,"charging_status":%s},"diagnostics":{"dtcs":%s},"oem_data":%s}`,
		pick("2026-01-02T10:00:00.250Z", "2026-01-02T10:00:01Z", "2026-01-02T10:00:01.001Z", "2031-01-01T00:00:00Z"),
		pick(
			`0`, `50.5`, `null`,
		),
		pick(`"fault"`, `"plugged_in"`, `null`), pick(`[]`, `["P0420"]`, `["12-34"]`),
		pick(`{}`, `{"a":[1,null]}`, `null`),
	)
	report, _, err := v1.DecodeReport([]byte(message), instant.Add(time.Second))
	require.NoError(t, err, "%s", message)
	for _, field := range []telematics.Field{telematics.SpeedKmh, telematics.Charging, telematics.DTCs, telematics.OEMData} {
		if rapid.Bool().Draw(t, field.String()+" is absent") {
			delete(report.Values, field)
		}
	}
	return report
}
