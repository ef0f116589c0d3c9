package main

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// latencies are of one kind of event, exact to three digits, from 1 µs to a minute.
type latencies struct{ h *hdrhistogram.Histogram }

func newLatencies() latencies {
	return latencies{hdrhistogram.New(1, time.Minute.Microseconds(), 3)}
}

// add takes one latency. What is outside counts as the nearest that is not.
func (l latencies) add(d time.Duration) {
	_ = l.h.RecordValue(min(max(d.Microseconds(), 1), time.Minute.Microseconds())) // within its bounds
}

// quantiles are latencies in milliseconds.
type quantiles struct {
	P50 float64 `json:"p50_ms"`
	P90 float64 `json:"p90_ms"`
	P99 float64 `json:"p99_ms"`
	Max float64 `json:"max_ms"`
}

func (l latencies) quantiles() quantiles {
	at := func(q float64) float64 { return float64(l.h.ValueAtQuantile(q)) / 1000 }
	return quantiles{P50: at(50), P90: at(90), P99: at(99), Max: float64(l.h.Max()) / 1000}
}
