package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestEvents_OnePerLine(t *testing.T) {
	var out strings.Builder
	at := position{wait: reconnectAfter}
	err := at.print(&out, strings.NewReader("retry: 50\nid: 1-0\n\nid: 2-0\nevent: presence\ndata: {\"vehicle_id\":42}\n\n: ping\nid: 3-0\n\nevent: end\ndata: {\"reason\":\"stopping\"}\n\n"))
	if out.String() != "presence {\"vehicle_id\":42}\n" || at.last != "3-0" || at.wait != 50*time.Millisecond || err == nil || !strings.Contains(err.Error(), "stopping") {
		t.Errorf("printed %q, position %+v, %v", out.String(), at, err)
	}
}

func TestEvents_IncompleteEventIsNotPrinted(t *testing.T) {
	var out strings.Builder
	at := position{}
	if err := at.print(&out, strings.NewReader("id: 1-0\n\nid: 2-0\nevent: status\ndata: {}\n")); err == nil || out.String() != "" || at.last != "1-0" {
		t.Errorf("printed %q, position %+v, %v", out.String(), at, err)
	}
}

func TestEvents_ResumeAfterTheLastEvent(t *testing.T) {
	var calls atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch calls.Add(1) {
		case 1:
			if r.URL.RawQuery != "event=command&vehicle_id=42" || r.Header.Get("Authorization") != "Bearer secret" || r.Header.Get("Last-Event-ID") != "" {
				t.Errorf("request %s with the header %v", r.URL, r.Header)
			}
			fmt.Fprint(w, "retry: 1\nid: 7-0\n\n")
		case 2:
			if r.Header.Get("Last-Event-ID") != "7-0" {
				t.Errorf("resumed after the event %q, want 7-0", r.Header.Get("Last-Event-ID"))
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"success":false,"message":"Not available.","error":{"retryable":true,"retry_after":10}}`)
		default:
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"success":false,"message":"The access token has expired."}`)
		}
	}))
	defer server.Close()
	err := events{remote: remote{connection: connection{URL: server.URL, Token: "secret"}}, Vehicle: "42", Event: "command"}.Run(ctx)
	if err == nil || !strings.Contains(err.Error(), "has expired") || calls.Load() != 3 {
		t.Errorf("%d requests, %v; want 3 and an expired token", calls.Load(), err)
	}
}
