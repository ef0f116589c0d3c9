package areas

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/rental"
	"motorpool/telematics"
)

// circle returns the GeoJSON of an uneven circle of n different points.
func circle(n int, at telematics.Position, radius float64) string {
	points := make([]string, n+1)
	for i := range n {
		angle, r := 2*math.Pi*float64(i)/float64(n), radius*(1-0.1*float64(i%2))
		points[i] = fmt.Sprintf("[%.7f,%.7f]", at.Longitude+r*math.Cos(angle), at.Latitude+r*math.Sin(angle))
	}
	points[n] = points[0]
	return `{"type":"Polygon","coordinates":[[` + strings.Join(points, ",") + `]]}`
}

// town returns 200 areas of 100 points: the town, and blocks in it.
func town(tb testing.TB) map[string]Placed {
	tb.Helper()
	placed := map[string]Placed{}
	for i := range 200 {
		at, radius := telematics.Position{Latitude: 48 + 0.01*float64(i/20), Longitude: 11 + 0.01*float64(i%20)}, 0.006
		if i == 0 {
			at, radius = telematics.Position{Latitude: 48.05, Longitude: 11.1}, 0.2
		}
		shape, err := ParseShape("geometry", []byte(circle(100, at, radius)))
		require.NoError(tb, err)
		name := fmt.Sprint("area", i)
		placed[name] = Placed{Area: rental.Area{Name: name, Kind: rental.AreaNoParking}, Shape: shape}
	}
	return placed
}

func BenchmarkIndex_At(b *testing.B) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := NewIndex(town(b))
	runtime.GC()
	runtime.ReadMemStats(&after)
	found, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		i++
		in, _ := x.At(telematics.Position{Latitude: 48 + 0.0001*float64(i%1000), Longitude: 11 + 0.0001*float64(i%1990)})
		found += len(in)
	}
	b.ReportMetric(float64(found)/float64(i), "areas/op")
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1024, "KiB")
	runtime.KeepAlive(x)
}
