package v1

import (
	"testing"
	"time"

	"motorpool/telematics"
)

func BenchmarkMerge(b *testing.B) {
	whole, _, err := DecodeReport([]byte(benchReports["whole"]), received)
	if err != nil {
		b.Fatal(err)
	}
	known := telematics.Merge(nil, whole)
	later := telematics.Report{At: whole.At.Add(time.Second), Values: whole.Values}
	partial := telematics.Report{At: later.At, Values: map[telematics.Field]any{telematics.IsLocked: true}}
	for name, r := range map[string]telematics.Report{"whole": later, "partial": partial, "repeated": whole} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				telematics.Merge(known, r)
			}
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	whole, _, err := DecodeReport([]byte(benchReports["whole"]), received)
	if err != nil {
		b.Fatal(err)
	}
	known := telematics.Merge(nil, whole)
	whole.At = whole.At.Add(time.Second)
	later := telematics.Merge(nil, whole)
	b.ReportAllocs()
	for b.Loop() {
		telematics.Join(known, later)
	}
}
