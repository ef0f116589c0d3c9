package telematics

import (
	"testing"
	"time"
)

func BenchmarkMerge(b *testing.B) {
	whole, _, err := DecodeReport([]byte(benchReports["whole"]), received)
	if err != nil {
		b.Fatal(err)
	}
	known := Merge(nil, whole)
	later := Report{At: whole.At.Add(time.Second), Values: whole.Values}
	partial := Report{At: later.At, Values: map[Field]any{IsLocked: true}}
	for name, r := range map[string]Report{"whole": later, "partial": partial, "repeated": whole} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Merge(known, r)
			}
		})
	}
}

func BenchmarkJoin(b *testing.B) {
	whole, _, err := DecodeReport([]byte(benchReports["whole"]), received)
	if err != nil {
		b.Fatal(err)
	}
	known := Merge(nil, whole)
	whole.At = whole.At.Add(time.Second)
	later := Merge(nil, whole)
	b.ReportAllocs()
	for b.Loop() {
		Join(known, later)
	}
}
