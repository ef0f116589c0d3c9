package guard

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

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

func TestTry_ReturnsTheErrorOrThePanic(t *testing.T) {
	want := errors.New("of the test")
	g := New(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err := g.Try("test", func() error { return want }); !errors.Is(err, want) || testutil.ToFloat64(g.panics) != 0 {
		t.Errorf("Try = %v, want %v", err, want)
	}
	if err := g.Try("test", func() error { panic(want) }); err == nil || err.Error() != "test: panic: of the test" ||
		testutil.ToFloat64(g.panics) != 1 {
		t.Errorf("Try = %v after a panic", err)
	}
}

func TestKeep_RunsAgainAfterAPanicUntilTheContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		want, runs := errors.New("of the test"), 0
		err := g.Keep(t.Context(), "test", func(ctx context.Context) error {
			switch runs++; runs {
			case 1:
				panic("of the loop")
			case 2:
				return g.Try("test", func() error { panic("of what the loop awaits") })
			}
			return want
		})
		if !errors.Is(err, want) || runs != 3 || testutil.ToFloat64(g.panics) != 2 {
			t.Errorf("Keep = %v after %d runs and %v panics, want %v after 3 and 2", err, runs, testutil.ToFloat64(g.panics), want)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*pauseAfter+pauseAfter/2)
		defer cancel()
		runs = 0
		if err := g.Keep(ctx, "test", func(context.Context) error { runs++; panic("always") }); err != nil || runs != 11 {
			t.Errorf("Keep = %v after %d runs, want nil after 11: no faster than once in %v", err, runs, pauseAfter)
		}
	})
}
