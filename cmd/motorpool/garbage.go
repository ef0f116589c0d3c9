package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// roomForGarbage may be taken by garbage before it is collected, or as much as is in use, where that is more. By default Go
// goes by what is in use alone: with the little that the service keeps when it is busy that is many collections a second.
const roomForGarbage = 96 << 20

// paceGarbage sets how much garbage the process may have, now and after each collection, unless GOGC says it. A limit of
// memory (GOMEMLIMIT) is heeded all the same. Call it once.
func paceGarbage() {
	if os.Getenv("GOGC") == "" {
		pace(&sentinel{})
	}
}

// sentinel is garbage that tells of a collection.
type sentinel struct {
	percent int
	_       [2]int // the smallest objects share their memory, and their end
}

func pace(s *sentinel) {
	if percent := garbagePercent(inUse()); percent != s.percent {
		debug.SetGCPercent(percent)
		s.percent = percent
	}
	runtime.SetFinalizer(s, pace)
}

// inUse returns the bytes to which the percentage of garbage is related: what the last collection found in use.
func inUse() uint64 {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	var sum uint64
	for _, s := range samples {
		sum += s.Value.Uint64()
	}
	return sum
}

// garbagePercent is in steps of 10, since each change halts the process for a moment.
func garbagePercent(inUse uint64) int {
	const least, most = 100, 1000
	percent := max(least, 100*roomForGarbage/float64(max(inUse, 1)))
	return int(math.Round(min(percent, most)/10)) * 10
}
