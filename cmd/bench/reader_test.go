package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"
)

// feed stands in for the live events: event n comes n times a tick after the beginning, until there are so many.
type feed struct {
	tick   time.Duration
	events int
	begin  time.Time
	skip   int // an event that nobody who comes back is told
}

func (f *feed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	next := 1
	if behind := r.Header.Get("Last-Event-ID"); behind != "" {
		if _, err := fmt.Sscanf(behind, "%d-0", &next); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		next++
	}
	resumes := next > 1
	fmt.Fprintf(w, "retry: 3000\nid: %d-0\n\n", next-1)
	for ; ; next++ {
		_ = http.NewResponseController(w).Flush() // a reader that has left is noticed below
		select {
		case <-time.After(time.Until(f.begin.Add(time.Duration(next) * f.tick))):
		case <-r.Context().Done():
			return
		}
		if next > f.events {
			<-r.Context().Done()
			return
		}
		if resumes && next == f.skip {
			continue
		}
		fmt.Fprintf(w, "id: %d-0\nevent: status\ndata: {\"at\":\"2026-01-02T10:00:03.250Z\"}\n\n", next)
	}
}

// follows reads a feed without a break and with many, and returns what became of both.
func follows(t *testing.T, f *feed) (uncut []string, r resumed, cut []string) {
	t.Helper()
	f.begin = time.Now()
	server := httptest.NewServer(f)
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	var heard, told history
	s, stop, err := heard.uncut(t.Context(), client, server.URL, "token", "")
	if err != nil {
		t.Fatal(err)
	}
	total := make(chan int, 1)
	go func() {
		for s.told.Load() < int64(f.events) && t.Context().Err() == nil {
			time.Sleep(time.Millisecond)
		}
		total <- f.events - min(f.skip, 1)
	}()
	r, err = told.cutAgainAndAgain(t.Context(), client, []string{server.URL, server.URL}, "token", "0-0", total)
	stop()
	if err != nil {
		t.Fatal(err)
	}
	return heard.all(), r, told.all()
}

func TestAReaderThatIsCutAgainAndAgainHasEveryEventOnce(t *testing.T) {
	uncut, r, cut := follows(t, &feed{tick: 2 * time.Millisecond, events: 2000})
	if len(uncut) != 2000 || !slices.Equal(uncut, cut) {
		t.Errorf("%d events uncut, %d cut %d times", len(uncut), len(cut), r.Cuts)
	}
	if r.Cuts == 0 {
		t.Error("it was never cut")
	}
}

func TestAGapBehindACutIsSeen(t *testing.T) {
	uncut, r, cut := follows(t, &feed{tick: 2 * time.Millisecond, events: 2000, skip: 1990})
	if r.Cuts == 0 || slices.Equal(uncut, cut) {
		t.Errorf("not seen, with %d cuts", r.Cuts)
	}
}

func TestAReaderThatStallsSeesWhatWasWrittenBeforeItsEnd(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "id: 1-0\nevent: status\ndata: {}\n\nevent: end\ndata: {\"reason\":\"too_slow\"}\n\n")
		_ = http.NewResponseController(w).Flush()
		time.Sleep(300 * time.Millisecond) // as long as it is patient with who does not read
		panic(http.ErrAbortHandler)        // cut
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r, err := stall(ctx, server.URL, "token")
	if err != nil {
		t.Fatal(err)
	}
	if r.After < 0.2 || r.After > 5 || r.Events != 1 || r.End != `{"reason":"too_slow"}` {
		t.Errorf("%+v", r)
	}
}

func TestReadersBeginBehindTheLastEventOfBefore(t *testing.T) {
	server := httptest.NewServer(&feed{tick: 5 * time.Millisecond, events: 100, begin: time.Now()})
	defer server.Close()
	client := server.Client()
	defer client.CloseIdleConnections()
	behind, err := lull(t.Context(), client, server.URL, "token")
	if err != nil || behind != "100-0" {
		t.Errorf("behind %q, %v", behind, err)
	}
}
