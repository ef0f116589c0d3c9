package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/assert"
)

const eventStream = "retry: 50\nid: 1-0\n\nid: 2-0\nevent: presence\ndata: {\"vehicle_id\":42,\"actor\":\"a\u009bb<c\"}\n\n: ping\n" +
	"id: 3-0\n\nevent: end\ndata: {\"reason\":\"stopping\"}\n\n"

func TestEvents_OnePerLine(t *testing.T) {
	for output, want := range map[string]string{
		"table": "presence {\"vehicle_id\":42,\"actor\":\"a\\u009bb<c\"}\n",
		"json":  `{"id":"2-0","event":"presence","data":{"vehicle_id":42,"actor":"a\u009bb<c"}}` + "\n",
	} {
		var out strings.Builder
		at := position{wait: reconnectAfter}
		e := events{remote: remote{presentation: presentation{Output: output}}}
		err := at.read(strings.NewReader(eventStream), func(l eventLine) error { return e.printLine(&out, l) })
		if out.String() != want || at.last != "3-0" || at.wait != 50*time.Millisecond || err == nil ||
			!strings.Contains(err.Error(), "stopping") {
			t.Errorf("%s: printed %q, position %+v, %v", output, out.String(), at, err)
		}
	}
}

func TestEvents_EachLineOfTheOutputIsJSON(t *testing.T) {
	var calls atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if calls.Add(1) == 1 {
			fmt.Fprint(w, "retry: 1\n"+strings.Repeat("id: 7-0\nevent: status\ndata: {\"vehicle_id\":42}\n\n", 3))
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"success":false,"message":"The access token has expired."}`)
	}))
	defer server.Close()
	t.Setenv("MOTORPOOL_TOKEN", "secret")
	for _, args := range [][]string{{"events", "--url", server.URL}, {"events", "--url", server.URL, "--output", "json"}} {
		calls.Store(0)
		printed, _ := output(t, args...)
		lines := strings.Split(strings.TrimSuffix(printed, "\n"), "\n")
		for _, line := range lines {
			var event struct {
				ID, Event string
				Data      struct {
					Vehicle int `json:"vehicle_id"`
				}
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil || event.ID != "7-0" || event.Event != "status" ||
				event.Data.Vehicle != 42 {
				t.Errorf("%v: the line %q is decoded as %+v: %v", args, line, event, err)
			}
		}
		assert.Equal(t, len(lines), 3, "lines printed by %v", args)
	}
}

func TestEvents_IncompleteEventIsNotPrinted(t *testing.T) {
	at := position{}
	err := at.read(strings.NewReader("id: 1-0\n\nid: 2-0\nevent: status\ndata: {}\n"), func(l eventLine) error {
		t.Errorf("printed %+v", l)
		return nil
	})
	if err == nil || at.last != "1-0" {
		t.Errorf("position %+v, %v", at, err)
	}
}

func TestEvents_ResumeAfterTheLastEvent(t *testing.T) {
	var calls atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 1:
			if r.URL.RawQuery != "event=command&vehicle_id=42" || r.Header.Get("Authorization") != "Bearer secret" ||
				r.Header.Get("Last-Event-ID") != "" {
				t.Errorf("request %s with the header %v", r.URL, r.Header)
			}
			fmt.Fprint(w, "retry: 1\nid: 7-0\n\n")
		case 2:
			assert.Equal(t, r.Header.Get("Last-Event-ID"), "7-0", "resumed after the event")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"success":false,"message":"Not available.","error":{"retryable":true,"retry_after":10}}`)
		case 3:
			w.WriteHeader(http.StatusTooManyRequests)
			fmt.Fprint(w, `{"success":false,"message":"You have 10 streams open.","error":{"retryable":true,"retry_after":10}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"success":false,"message":"The access token has expired."}`)
		}
	}))
	defer server.Close()
	err := events{remote: remote{connection: connection{URL: server.URL, Token: "secret"}}, Vehicle: "42", Event: "command"}.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "has expired") || calls.Load() != 4 {
		t.Errorf("%d requests, %v; want 4 and an expired token", calls.Load(), err)
	}
	// What no request can have is not tried for ever.
	err = events{remote: remote{connection: connection{URL: server.URL, Token: "secret"}}, After: "7-0\n"}.Run(ctx)
	if exitCode(err) != exitUsage || calls.Load() != 4 {
		t.Errorf("an id with the end of a line: %d requests, %v", calls.Load()-4, err)
	}
}
