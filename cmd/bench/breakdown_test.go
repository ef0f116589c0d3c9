package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"runtime/trace"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/telematics"
)

// traced returns the trace of what is done.
func traced(t *testing.T, do func()) *bytes.Buffer {
	t.Helper()
	var taken bytes.Buffer
	if err := trace.Start(&taken); err != nil {
		t.Fatal(err)
	}
	do()
	trace.Stop()
	return &taken
}

func names(steps []step) []string {
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = s.Name
	}
	return all
}

func TestABreakdownHasEachStepAtLeastAsLongAsItTook(t *testing.T) {
	const long, longest = 2 * time.Millisecond, 20 * time.Millisecond
	taken := traced(t, func() {
		ctx := context.Background()
		var callers sync.WaitGroup
		for n := range 50 {
			callers.Go(func() {
				defer trace.StartRegion(ctx, telematics.StepHTTP).End()
				claiming := trace.StartRegion(ctx, telematics.StepClaim)
				time.Sleep(long)
				if n == 0 {
					time.Sleep(longest)
				}
				claiming.End()
				trace.WithRegion(ctx, "of somebody else", func() { time.Sleep(long) })
				trace.WithRegion(ctx, telematics.StepSettle, func() {})
			})
		}
		callers.Wait()
	})
	steps, err := breakdown(taken)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{telematics.StepHTTP, telematics.StepClaim, telematics.StepSettle}; !slices.Equal(names(steps), want) {
		t.Fatalf("%v, want %v", names(steps), want)
	}
	atLeast := func(d time.Duration) float64 { return float64(d.Microseconds()) * 0.999 } // three digits are kept
	http, claim, settle := steps[0], steps[1], steps[2]
	if http.Count != 50 || claim.Count != 50 || settle.Count != 50 {
		t.Errorf("counts of %+v", steps)
	}
	if claim.P50 < atLeast(long) || claim.P99 < atLeast(longest) || claim.Mean < atLeast(long+longest/50) {
		t.Errorf("claims took %+v", claim)
	}
	if http.P50 < atLeast(2*long) || http.Mean < claim.Mean+settle.Mean {
		t.Errorf("%+v", steps)
	}
}

func TestOfAStepThatTheTraceHasHalfOfNothingIsCounted(t *testing.T) {
	ctx := context.Background()
	running, ended, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var before, after sync.WaitGroup
	first := traced(t, func() {
		before.Go(func() {
			defer trace.StartRegion(ctx, telematics.StepHTTP).End() // ends in the second trace
			close(running)
			<-ended
			trace.WithRegion(ctx, telematics.StepAnswer, func() {})
		})
		<-running
		trace.WithRegion(ctx, telematics.StepClaim, func() {})
	})
	second := traced(t, func() {
		close(ended)
		before.Wait()
		begun := make(chan struct{})
		after.Go(func() {
			defer trace.StartRegion(ctx, telematics.StepAir).End() // ends behind it
			close(begun)
			<-stopped
		})
		<-begun
	})
	close(stopped)
	after.Wait()
	for want, taken := range map[string]*bytes.Buffer{telematics.StepClaim: first, telematics.StepAnswer: second} {
		steps, err := breakdown(taken)
		if err != nil || !slices.Equal(names(steps), []string{want}) {
			t.Errorf("%v, %v, want %s alone", names(steps), err, want)
		}
	}
}

func TestWhatIsNoTraceHasNoBreakdown(t *testing.T) {
	taken := traced(t, func() { trace.WithRegion(context.Background(), telematics.StepClaim, func() {}) })
	for what, text := range map[string]string{"nothing": "", "words": "404 page not found", "half": taken.String()[:taken.Len()/2]} {
		if steps, err := breakdown(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %+v", what, steps)
		}
	}
}

func TestATraceIsTakenForSoLong(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := httptest.NewServer(mux)
	defer server.Close()
	defer http.DefaultClient.CloseIdleConnections()
	working, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	work.Go(func() {
		for working.Err() == nil {
			trace.WithRegion(working, telematics.StepSign, func() { time.Sleep(time.Millisecond) })
		}
	})
	defer work.Wait()
	defer stop()
	const long = 100 * time.Millisecond
	begin := time.Now()
	taken, err := takeProfile(t.Context(), server.URL, "trace", long)
	if took := time.Since(begin); err != nil || took < long {
		t.Fatalf("%v after %v", err, took)
	}
	if steps, err := breakdown(bytes.NewReader(taken)); err != nil || !slices.Equal(names(steps), []string{telematics.StepSign}) {
		t.Errorf("%+v, %v", steps, err)
	}
	if _, err := takeProfile(t.Context(), server.URL+"/elsewhere", "trace", long); err == nil {
		t.Error("a trace came from elsewhere")
	}
}
