package load

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func TestMain(m *testing.M) {
	// These goroutines end a while after the client becomes idle.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*HostClient).connsCleaner"))
}

func TestVehicles_SpreadOverTheFleet(t *testing.T) {
	v := Spread(10, 3)
	for id, want := range map[int]int{1: 0, 4: 1, 7: 2, 0: -1, 2: -1, 10: -1} {
		n, ok := v.Index(id)
		if ok != (want >= 0) || ok && (n != want || v.ID(n) != id) {
			t.Errorf("index of vehicle %d: %d, %t, want %d", id, n, ok, want)
		}
	}
}

func TestLatency_WithinItsBounds(t *testing.T) {
	for range 1000 {
		if d := Latency(5 * time.Second).draw(); d < 2*time.Second || d > 10*time.Second {
			t.Fatalf("latency %v, want 2s to 10s", d)
		}
	}
}

func TestCalls_CountAnswersAndRefusals(t *testing.T) {
	errRefused := errors.New("refused")
	called := Calls{Workers: 4, For: 50 * time.Millisecond}.Do(t.Context(), func(n int) func() error {
		return func() error {
			time.Sleep(2 * time.Millisecond)
			if n == 0 {
				return errRefused
			}
			return nil
		}
	})
	if called.Answered == 0 || called.Refused == 0 || called.Why != "refused" || called.P50 < 2 || called.P99 < called.P50 ||
		called.Rate <= 0 {
		t.Errorf("result %+v, want answers, refusals with a reason, and latencies", called)
	}
}

func TestPercentile(t *testing.T) {
	var all []time.Duration
	for n := 101; n > 0; n-- {
		all = append(all, time.Duration(n)*time.Millisecond)
	}
	for q, want := range map[int]float64{50: 51, 99: 100, 100: 101} {
		assert.Equal(t, percentile(all, q), want, "percentile %d in ms", q)
	}
}

func TestRequests_WaitConcurrently(t *testing.T) {
	const vehicles = 50
	var waiting atomic.Int64
	all := make(chan struct{})
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer token" || r.Header.Get("Prefer") != "wait=30" {
			t.Errorf("request %s %s with %v", r.Method, r.URL, r.Header)
		}
		if waiting.Add(1) == vehicles {
			close(all)
		}
		<-all
		if strings.Contains(r.URL.Path, "/7/control/lock") {
			http.Error(w, "no", http.StatusConflict)
			return
		}
		_, _ = fmt.Fprintf(w, `{"data":{"completed_at":%q}}`, time.Now().Add(-time.Second).Format(time.RFC3339Nano))
	}))
	defer service.Close()
	requests := &Requests{
		URL: service.URL, Token: "token", Vehicles: Spread(vehicles, vehicles), Wait: 30 * time.Second,
		Calls: Calls{Workers: vehicles, Over: 20 * time.Millisecond},
	}
	result, err := requests.Do(t.Context(), nil)
	require.NoError(t, err)
	called := result.(Called)
	if called.Answered != vehicles-1 || called.Refused != 1 || !strings.Contains(called.Why, "409") {
		t.Errorf("%d answered, %d refused (%s)", called.Answered, called.Refused, called.Why)
	}
	if called.Settled < 1000 || called.Settled > 10_000 {
		t.Errorf("%v ms from the settlement to the caller, want more than 1000", called.Settled)
	}
}

func TestReport_IsCompleteAndValid(t *testing.T) {
	now := time.Now().UTC().Truncate(time.Millisecond)
	for _, sequence := range []int{1, 9, 10, 4711, 99_999, 123_456, 999_999} {
		payload := Report(sequence, now.Format(reportTime))
		report, dropped, err := v1.DecodeReport(payload, now)
		if err != nil || len(dropped) > 0 {
			t.Fatalf("decoded with error %v, dropped %v of %s", err, dropped, payload)
		}
		if len(payload) != ReportSize || !report.At.Equal(now) || report.Values[telematics.LocatedAt] == nil {
			t.Errorf("%d bytes, at %v, located at %v; want %v", len(payload), report.At, report.Values[telematics.LocatedAt], now)
		}
		if mileage, ok := report.Values[telematics.MileageKm].(float64); !ok || SequenceOf(mileage) != sequence {
			t.Errorf("report %d has mileage %v", sequence, report.Values[telematics.MileageKm])
		}
	}
}

func TestReports_EveryVehicleReports(t *testing.T) {
	for _, vehicles := range []int{1, 2, 500, 2000, 30_000, 100_000} {
		p := Published{Last: make([]int, vehicles)}
		r := &Reports{Vehicles: vehicles, From: 3}
		r.next(&p, int64(vehicles))
		for v, last := range p.Last {
			if last != 4 {
				t.Fatalf("of %d vehicles number %d has reported with the sequence number %d, want 4", vehicles, v+1, last)
			}
		}
	}
}
