package load

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestVehicles_SpreadOverTheFleet(t *testing.T) {
	v := Spread(10, 3)
	if v != (Vehicles{3, 3}) || v.ID(0) != 1 || v.ID(2) != 7 {
		t.Errorf("vehicles %+v, want every third, three in all", v)
	}
	for id, want := range map[int]int{1: 0, 4: 1, 7: 2} {
		if n, ok := v.Index(id); !ok || n != want {
			t.Errorf("index of vehicle %d: %d, %t", id, n, ok)
		}
	}
	for _, id := range []int{0, 2, 10} {
		if n, ok := v.Index(id); ok {
			t.Errorf("vehicle %d has the index %d, want none", id, n)
		}
	}
}

func TestVehicles_TurnsShareNoVehicle(t *testing.T) {
	v := Spread(7, 7)
	seen := map[int]int{}
	for worker := range 3 {
		next := v.Turns(worker, 3)
		var ids []int
		for range 6 {
			ids = append(ids, next())
		}
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			seen[id]++
		}
	}
	for id := 1; id <= 7; id++ {
		if seen[id] != 1 {
			t.Errorf("vehicle %d has %d workers, want 1", id, seen[id])
		}
	}
}

func TestVehicleIn_NamesTheUnitOfATopic(t *testing.T) {
	if got := VehicleIn(FloorRoot+string(UnitOf(42))+"/ack", FloorRoot); got != 42 {
		t.Errorf("the topic names vehicle %d, want 42", got)
	}
}

func TestNetwork_LatencyWithinItsBounds(t *testing.T) {
	n := Network(5 * time.Second)
	for range 1000 {
		if d := n.draw(); d < 2*time.Second || d > 10*time.Second {
			t.Fatalf("latency %v, want 2s to 10s", d)
		}
	}
}

func TestCallConcurrently_CountsAnswersAndRefusals(t *testing.T) {
	errRefused := errors.New("refused")
	called := CallConcurrently(t.Context(), 4, 50*time.Millisecond, func(n int) func() error {
		return func() error {
			time.Sleep(2 * time.Millisecond)
			if n == 0 {
				return errRefused
			}
			return nil
		}
	})
	if called.Answered == 0 || called.Refused == 0 || called.Why != "refused" || called.P50 < 2 || called.P99 < called.P50 || called.Rate <= 0 {
		t.Errorf("result %+v, want answers, refusals with a reason, and latencies", called)
	}
}

// locks stands in for the service with its lock requests.
func locks(t *testing.T, handle http.HandlerFunc) string {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer token" || !strings.HasSuffix(r.URL.Path, "/control/lock") {
			http.Error(w, "wrong request", http.StatusBadRequest)
			return
		}
		handle(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestWaiters_WaitConcurrently(t *testing.T) {
	const vehicles = 50
	var waiting atomic.Int64
	all := make(chan struct{})
	url := locks(t, func(w http.ResponseWriter, r *http.Request) {
		if waiting.Add(1) == vehicles {
			close(all)
		}
		<-all
		if strings.Contains(r.URL.Path, "/7/") {
			http.Error(w, "no", http.StatusConflict)
			return
		}
		_, _ = w.Write([]byte(`{"data":{"completed_at":"2026-01-02T03:04:05.006Z"}}`))
	})
	result, err := (&Waiters{URL: url, Token: "token", Vehicles: vehicles, Over: 20 * time.Millisecond}).Do(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	w := result.(Waited)
	if w.Answered != vehicles-1 || w.Refused != 1 || !strings.Contains(w.Why, "409") || w.Peak != vehicles {
		t.Errorf("%d answered, %d refused (%s), peak %d", w.Answered, w.Refused, w.Why, w.Peak)
	}
	if w.Ended[6] != 0 || w.Ended[0] == 0 || w.Completed[0] != time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC).UnixMicro() {
		t.Errorf("the waits ended at %v, the commands completed at %v", w.Ended[:8], w.Completed[:8])
	}
}

func TestRequests_LockVehiclesInTurn(t *testing.T) {
	var seen [5]atomic.Int64
	url := locks(t, func(_ http.ResponseWriter, r *http.Request) {
		seen[r.URL.Path[len("/api/v1/admin/vehicles/")]-'1'].Add(1)
	})
	result, err := (&Requests{URLs: []string{url}, Token: "token", Method: http.MethodPost, Path: LockPath, Vehicles: Spread(5, 5), InFlight: 2, For: 50 * time.Millisecond}).Do(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if called := result.(Called); called.Answered < 5 || called.Refused > 0 {
		t.Errorf("result %+v, want at least 5 answers and no refusal", called)
	}
	for i := range seen {
		if seen[i].Load() == 0 {
			t.Errorf("vehicle %d was not locked", i+1)
		}
	}
}

func TestCounts_EndedAreMergedOrLost(t *testing.T) {
	before := Counts{ReportsReceived: 5, ReportsMerged: 5}
	now := Counts{
		ReportsReceived: 20, ReportsMerged: 12, `motorpool_dropped_total{kind="report", reason="queue_full"}`: 3,
		`motorpool_dropped_total{kind="answer", reason="queue_full"}`: 9, `motorpool_dropped_total{kind="report", reason="malformed"}`: 0,
	}
	added := now.Since(before)
	if added.Ended() != 10 || len(added.Lost(15)) != 1 || added.Lost(16)["not_received"] != 1 {
		t.Errorf("%d commands ended; lost are %v of 15, %v of 16", added.Ended(), added.Lost(15), added.Lost(16))
	}
}
