package guard

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestOutage_LogsItsBeginAndItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		log := slog.New(slog.NewTextHandler(&text, nil))
		ctx, cancel := context.WithCancel(t.Context())
		var o Outage
		for range 2 {
			o.Note(ctx, log, "halts not read", nil)
			for range 3600 {
				o.Note(ctx, log, "halts not read", errors.New("connection refused"))
				time.Sleep(time.Second)
			}
			o.Note(ctx, log, "halts not read", nil)
			time.Sleep(time.Second)
		}
		cancel()
		o.Note(ctx, log, "halts not read", context.Canceled)
		for line, want := range map[string]int{
			`level=WARN msg="outage began, retrying" what="halts not read" err="connection refused"`: 2,
			`level=INFO msg="outage ended" what="halts not read" took=1h0m0s`:                        2,
			"\n": 4,
		} {
			if n := strings.Count(text.String(), line); n != want {
				t.Errorf("%q was logged %d times, want %d:\n%s", line, n, want, text.String())
			}
		}
	})
}
