package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/exp/trace"

	"motorpool/telematics"
)

// step is how long one part of a command takes, in microseconds.
type step struct {
	Name  string  `json:"name"`
	Count int     `json:"count"`
	Mean  float64 `json:"mean_us"`
	P50   float64 `json:"p50_us"`
	P99   float64 `json:"p99_us"`
}

// takeProfile lets an instance observe itself for so long: its execution ("trace"), or what its CPU does ("profile").
func takeProfile(ctx context.Context, internalURL, kind string, d time.Duration) ([]byte, error) {
	seconds := max(1, int(d.Seconds()))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s/debug/pprof/%s?seconds=%d", internalURL, kind, seconds), nil)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", kind, err)
	}
	defer response.Body.Close()
	taken, err := io.ReadAll(response.Body) // read later: that costs what is measured
	if err != nil {
		return nil, fmt.Errorf("take %s: %w", kind, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("take %s: %s: %s", kind, response.Status, taken)
	}
	return taken, nil
}

// breakdown tells from an execution trace where the time of commands went: its steps in the order in which they begin.
// What the trace has only one end of is not counted.
func breakdown(r io.Reader) ([]step, error) {
	reader, err := trace.NewReader(r)
	if err != nil {
		return nil, fmt.Errorf("read trace: %w", err)
	}
	took := map[string]*hdrhistogram.Histogram{}
	for _, name := range telematics.Steps {
		took[name] = hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)
	}
	begun := map[trace.GoID][]trace.Event{} // the innermost last
	for {
		event, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("read trace: %w", err)
		}
		switch event.Kind() {
		case trace.EventRegionBegin:
			begun[event.Goroutine()] = append(begun[event.Goroutine()], event)
		case trace.EventRegionEnd:
			open := begun[event.Goroutine()]
			if len(open) == 0 {
				continue // it began before the trace
			}
			begin := open[len(open)-1] // of the same name: the reader has checked that
			begun[event.Goroutine()] = open[:len(open)-1]
			if h, ok := took[event.Region().Type]; ok {
				_ = h.RecordValue(min(event.Time().Sub(begin.Time()).Nanoseconds(), time.Minute.Nanoseconds())) // within its bounds
			}
		}
	}
	var steps []step
	for _, name := range telematics.Steps {
		if h := took[name]; h.TotalCount() > 0 {
			at := func(q float64) float64 { return float64(h.ValueAtQuantile(q)) / 1000 }
			steps = append(steps, step{Name: name, Count: int(h.TotalCount()), Mean: h.Mean() / 1000, P50: at(50), P99: at(99)})
		}
	}
	return steps, nil
}
