// Package logger makes the logger that all programs share: colours on a terminal, slog's text
// elsewhere, or JSON.
package logger

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"

	"motorpool/tracing"
)

// New returns a logger with a level (debug, info, warn or error; info for anything else) and a
// format: text, json, or auto, which is text on a terminal and otherwise json. Messages that are
// logged with a request's context have the ids of the request and of its trace. Each line is
// written with one call, when it is logged.
func New(w io.Writer, level, format string) *slog.Logger {
	log := newLogger(w, level, format)
	if w, ok := w.(*Writer); ok {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.gap = func(lines int) {
			log.Warn("log lines dropped, they were not read or could not be written", "lines", lines)
		}
	}
	return log
}

func newLogger(w io.Writer, level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: parseLevel(level)}
	switch {
	case format == "json" || format == "auto" && !isTerminal(w):
		return correlated(slog.NewJSONHandler(w, options))
	case isTerminal(w):
		return correlated(tint.NewTextHandler(w, &tint.Options{Level: options.Level, TimeFormat: time.TimeOnly}))
	default:
		return correlated(slog.NewTextHandler(w, options))
	}
}

func correlated(h slog.Handler) *slog.Logger { return slog.New(tracing.LogHandler(h)) }

func parseLevel(s string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s)); err != nil {
		return slog.LevelInfo // programs check their settings before
	}
	return level
}

func isTerminal(w io.Writer) bool {
	if behind, ok := w.(*Writer); ok {
		w = behind.to
	}
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
