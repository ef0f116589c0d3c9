package service_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/logger"
	"motorpool/telematics"
)

// Who reads the log stops: requests and probes go on, and lines are dropped and counted.
func TestServe_LogWithoutAReaderStopsNoRequest(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	reader, pipe, err := os.Pipe()
	s.must(err)
	t.Cleanup(func() { _, _ = reader.Close(), pipe.Close() })
	lines := logger.NewWriter(pipe)
	s.log = logger.New(lines, "debug", "json")
	i := s.serve(func(c *app.Config) { c.LogDropped, c.Health = lines.Dropped, "127.0.0.1:0" })
	s.drive(nil, healthy)
	long := strings.Repeat("x", 100_000)
	for range 100 { // more than the pipe and the writer hold
		s.log.Info("filler", "text", long)
	}
	for _, url := range []string{i.health + "/healthz", i.health + "/readyz", i.internal + "/readyz"} {
		began := time.Now()
		response, err := http.Get(url)
		s.must(err)
		_ = response.Body.Close()
		if took := time.Since(began); response.StatusCode != http.StatusOK || took > slower*5*time.Second {
			t.Errorf("%s: %d after %v, want 200 soon", url, response.StatusCode, took)
		}
	}
	s.eventually(30*time.Second, "a command executed", func() bool { return i.control(1, telematics.Lock).status == http.StatusOK })
	if dropped := i.metric("motorpool_log_lines_dropped_total"); dropped < 1 {
		t.Errorf("%d lines are counted as dropped", dropped)
	}
}
