package twins

import (
	"context"
	"fmt"
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// BenchmarkObserve measures reports from the decoder to Redis, in batches as the broker makes
// them.
func BenchmarkObserve(b *testing.B) {
	for _, fleet := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("vehicles=%d", fleet), func(b *testing.B) {
			twins := newTwins(open(b, storetest.NewDatabase(b)), openRedis(b, storetest.StartRedis(b).URL()), 0)
			units := storetest.AddFleet(b, twins.stored.DB, fleet)
			storetest.Run(b, func(ctx context.Context) error { return twins.Run(ctx, nil) })
			batch := make([]delivery.Observation, 0, 256)
			start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
			n := 0
			for b.Loop() {
				report := fullReport(b, start.Add(time.Duration(n)*time.Millisecond), n)
				batch = append(batch, delivery.Observation{Unit: units[n%fleet], At: time.Now(), Report: &report})
				if n++; len(batch) == cap(batch) {
					if _, err := twins.Observe(context.Background(), batch); err != nil {
						b.Fatal(err)
					}
					batch = batch[:0]
				}
			}
		})
	}
}

func fullReport(tb testing.TB, at time.Time, n int) telematics.Report {
	tb.Helper()
	values := map[telematics.Field]any{
		telematics.Latitude: 48.1371 + float64(
			n%1000,
		)/1e4,
		telematics.Longitude: 11.5754, telematics.Heading: float64(n % 360), telematics.LocatedAt: at,
		telematics.SpeedKmh: float64(
			n % 130,
		),
		telematics.MileageKm: 15230.4 + float64(n)/10, telematics.Ignition: "on", telematics.Gear: "D",
		telematics.ParkBrake: "released", telematics.FuelLevel: 61.0, telematics.RangeKm: 412.5,
		telematics.OnboardV: 12.6, telematics.IsLocked: false, telematics.EngineRuns: true,
		telematics.Sunroof: "closed", telematics.KeyStatus: "in", telematics.DTCs: []string{"P0420"},
		telematics.ServiceDueKm: 4200.0, telematics.OilLife: 61.0, telematics.WarningLamps: []string{},
		telematics.RSRP: -97.0, telematics.Firmware: "4.2.1",
	}
	for _, f := range []telematics.Field{telematics.DoorFrontLeft, telematics.DoorFrontRight, telematics.DoorRearLeft,
		telematics.DoorRearRight, telematics.DoorTrunk} {
		values[f] = "closed"
	}
	return telematics.Report{At: at, Values: values}
}

func BenchmarkWriteBehind(b *testing.B) {
	p := open(b, storetest.NewDatabase(b))
	units := storetest.AddFleet(b, p.DB, postgresBatch)
	batch := make([]observation, postgresBatch)
	start := time.Now().Add(-time.Hour).Truncate(time.Millisecond)
	for i := range batch {
		report := fullReport(b, start, i)
		batch[i] = newObservation(delivery.Observation{Unit: units[i], At: start, Report: &report})
	}
	n := 0
	for b.Loop() {
		n++
		for i := range batch {
			report := fullReport(b, start.Add(time.Duration(n)*time.Second), n)
			batch[i] = newObservation(delivery.Observation{Unit: batch[i].Unit, At: start, Report: &report})
		}
		if _, _, err := p.observe(context.Background(), batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/postgresBatch, "us/row")
}

// A state on its way into Redis and back.
func BenchmarkSections(b *testing.B) {
	snapshot := telematics.Merge(nil, fullReport(b, time.Now().Truncate(time.Millisecond), 1))
	encode := func() map[string]string {
		hash := map[string]string{}
		for _, place := range sectionsIn(snapshot) {
			row, err := encodeSection(place, snapshot)
			if err != nil {
				b.Fatal(err)
			}
			hash[telematics.Sections[place]] = string(row)
		}
		return hash
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encode()
		}
	})
	b.Run("decode", func(b *testing.B) {
		hash := encode()
		b.ReportAllocs()
		for b.Loop() {
			if state := decodeState(hash); len(state.snapshot) != len(snapshot) {
				b.Fatalf("%d readings, want %d", len(state.snapshot), len(snapshot))
			}
		}
	})
}
