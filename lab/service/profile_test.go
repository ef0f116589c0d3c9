package service_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"testing"

	"golang.org/x/exp/trace"

	"motorpool/internal/app"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// A process can run one trace at a time: this test runs before those that are parallel.
func TestProfiles_AreInternalAndATraceHasAllStepsOfACommand(t *testing.T) {
	s := startStack(t, 1)
	i := s.serve(func(c *app.Config) { c.VehicleRate, c.AdminRate, c.Profiles = 0, 0, true })
	s.drive(nil, healthy)
	traced := make(chan struct{})
	var calls sync.WaitGroup
	calls.Go(func() {
		for {
			select {
			case <-traced:
				return
			default:
			}
			i.control(1, telematics.Lock).wants(http.StatusOK)
		}
	})
	missing := delivery.Steps
	var seen map[string]int
	// A busy machine may end no command within a second.
	for seconds := 1; len(missing) > 0 && seconds <= 16; seconds *= 2 {
		status, taken := i.fetch(fmt.Sprintf("%s/debug/pprof/trace?seconds=%d", i.internal, seconds))
		if status != http.StatusOK {
			s.Fatalf("trace: %d", status)
		}
		seen = s.regions(taken)
		missing = slices.DeleteFunc(slices.Clone(delivery.Steps), func(step string) bool { return seen[step] > 0 })
	}
	close(traced)
	calls.Wait()
	if len(missing) > 0 {
		s.Errorf("the trace has no regions %q, only %v", missing, seen)
	}

	for path, inside := range map[string]int{
		"/debug/pprof/": 200, "/debug/pprof/heap": 200, "/debug/pprof/goroutine": 200, "/debug/pprof/profile?seconds=1": 200,
		"/debug/pprof/trace?seconds=1": 200,
		"/debug/pprof/cmdline":         404, // the command line may have secrets
	} {
		if status, _ := i.fetch(i.internal + path); status != inside {
			t.Errorf("%s on the internal listener: %d, want %d", path, status, inside)
		}
		if status, _ := i.fetch(i.base + path); status != http.StatusNotFound {
			t.Errorf("%s on the public listener: %d, want 404", path, status)
		}
	}
}

// fetch returns the status and the body of a URL.
func (s *stack) fetch(url string) (int, []byte) {
	s.Helper()
	response, err := http.Get(url)
	s.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	s.must(err)
	return response.StatusCode, body
}

// regions counts the completed regions of a trace, by name.
func (s *stack) regions(taken []byte) map[string]int {
	s.Helper()
	reader, err := trace.NewReader(bytes.NewReader(taken))
	s.must(err)
	ended := map[string]int{}
	for {
		event, err := reader.ReadEvent()
		if errors.Is(err, io.EOF) {
			return ended
		}
		s.must(err)
		if event.Kind() == trace.EventRegionEnd {
			ended[event.Region().Type]++
		}
	}
}
