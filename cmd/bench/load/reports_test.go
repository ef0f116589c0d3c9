package load

import (
	"testing"
	"time"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func TestReport_IsCompleteAndValid(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	for _, sequence := range []int{1, 9, 10, 4711, 99_999, 123_456, 999_999} {
		payload := Report(sequence, now.Format(reportTime))
		report, dropped, err := v1.DecodeReport(payload, now)
		if err != nil || len(dropped) > 0 {
			t.Fatalf("decoded with error %v, dropped %v of %s", err, dropped, payload)
		}
		if len(payload) != ReportSize || !report.At.Equal(now) || report.Values[telematics.LocatedAt] == nil {
			t.Errorf("%d bytes, at %v, located at %v; want %v", len(payload), report.At, report.Values[telematics.LocatedAt], now)
		}
		if mileage, ok := report.Values[telematics.MileageKm].(float64); !ok || SequenceOf(mileage) != sequence {
			t.Errorf("report %d has mileage %v", sequence, report.Values[telematics.MileageKm])
		}
	}
}

func TestReport_DiffersFromThePreviousOne(t *testing.T) {
	now := time.Now().UTC()
	first, _, err1 := v1.DecodeReport(Report(1, now.Format(reportTime)), now)
	second, _, err2 := v1.DecodeReport(Report(2, now.Add(50*time.Millisecond).Format(reportTime)), now)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, field := range []telematics.Field{
		telematics.Latitude, telematics.Longitude, telematics.Heading, telematics.LocatedAt, telematics.SpeedKmh, telematics.MileageKm,
	} {
		if first.Values[field] == second.Values[field] {
			t.Errorf("the field %s is %v in both reports", field, first.Values[field])
		}
	}
}
