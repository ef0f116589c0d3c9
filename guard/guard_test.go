package guard

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestDo_CountsAndLogsAPanic(t *testing.T) {
	var log bytes.Buffer
	g := New(slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
	if err := g.Do("test", func() {}); err != nil || testutil.ToFloat64(g.panics) != 0 {
		t.Errorf("Do = %v without a panic", err)
	}
	err := g.Do("test", func() { panic("of the test") })
	if err == nil || testutil.ToFloat64(g.panics) != 1 {
		t.Errorf("Do = %v, %v panics counted; want an error and one", err, testutil.ToFloat64(g.panics))
	}
	for _, text := range []string{"of the test", "doing=test", "guard_test.go"} {
		if !strings.Contains(log.String(), text) {
			t.Errorf("the log lacks %q: %s", text, log.String())
		}
	}
	if err := (*Guard)(nil).Do("test", func() { panic("of the test") }); err == nil {
		t.Error("a guard that is nil returned no error")
	}
}
