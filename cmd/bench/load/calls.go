package load

import (
	"context"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Latencies are a histogram, exact to three digits, from 1 µs to a minute.
type Latencies struct{ h *hdrhistogram.Histogram }

// NewLatencies returns an empty histogram.
func NewLatencies() Latencies { return Latencies{hdrhistogram.New(1, time.Minute.Microseconds(), 3)} }

// Add adds one latency, or the nearest in range.
func (l Latencies) Add(d time.Duration) {
	_ = l.h.RecordValue(min(max(d.Microseconds(), 1), time.Minute.Microseconds())) // in range
}

// Quantiles returns the quantiles so far.
func (l Latencies) Quantiles() Quantiles {
	at := func(q float64) float64 { return float64(l.h.ValueAtQuantile(q)) / 1000 }
	return Quantiles{P50: at(50), P90: at(90), P99: at(99), Max: float64(l.h.Max()) / 1000}
}

// Quantiles are latencies in milliseconds.
type Quantiles struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

// Called is the result of many calls.
type Called struct {
	Answered int64   `json:"answered"`
	Refused  int64   `json:"refused"`
	Why      string  `json:"why,omitempty"` // of one that was refused
	Rate     float64 `json:"per_second"`    // answered
	Quantiles
}

// CallConcurrently runs workers for d, each of which makes one call after the other. It interrupts
// no call, and returns when all have ended.
func CallConcurrently(ctx context.Context, workers int, d time.Duration, worker func(n int) (call func() error)) Called {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var mu sync.Mutex // guards sum and all
	var sum Called
	all := NewLatencies()
	var running sync.WaitGroup
	begin := time.Now()
	for n := range workers {
		call := worker(n)
		running.Go(func() {
			var own Called
			latencies := NewLatencies()
			for ctx.Err() == nil {
				sent := time.Now()
				if err := call(); err != nil {
					own.Refused++
					own.Why = err.Error()
					continue
				}
				latencies.Add(time.Since(sent))
				own.Answered++
			}
			mu.Lock()
			defer mu.Unlock()
			all.h.Merge(latencies.h)
			sum.Answered += own.Answered
			sum.Refused += own.Refused
			if own.Refused > 0 {
				sum.Why = own.Why
			}
		})
	}
	running.Wait()
	sum.Rate = float64(sum.Answered) / time.Since(begin).Seconds()
	sum.Quantiles = all.Quantiles()
	return sum
}
