package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"motorpool/store/pg"
	"motorpool/telematics"
)

// Concurrently runs a benchmark with different numbers of concurrent callers.
func Concurrently(b *testing.B, run func(b *testing.B, callers int)) {
	for _, callers := range []int{1, 16, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { run(b, callers) })
	}
}

// RoundSize is the number of calls in a round. The callers start anew in each, so it is many times
// their greatest number.
const RoundSize = 4096

// Call makes b.N calls by a number of concurrent callers, each with its own parameter. The
// parameters of a round are made between rounds, and are not measured.
func Call[T any](b *testing.B, callers int, fresh func(n int) []T, call func(T) error) {
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0 && !b.Failed(); {
		b.StopTimer()
		things := fresh(min(left, RoundSize))
		b.StartTimer()
		var next atomic.Int64
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(things)); i = next.Add(1) - 1 {
					if err := call(things[i]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		left -= len(things)
	}
	b.StopTimer()
}

// AddFleet adds the vehicles from 1 to n, with their units.
func AddFleet(tb testing.TB, db *pg.DB, n int) []telematics.Unit {
	tb.Helper()
	units := make([]telematics.Unit, n)
	for i := range units {
		_, units[i] = AddVehicle(tb, db, telematics.VehicleID(i+1))
	}
	return units
}
