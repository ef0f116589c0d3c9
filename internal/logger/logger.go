// Package logger makes the logger that all programs share: slog's text, or JSON.
package logger

import (
	"io"
	"log/slog"
	"os"

	"motorpool/telematics"
	"motorpool/tracing"
)

// New returns a logger with a level (debug, info, warn or error; info for anything else) and a
// format: text, json, or auto, which is text on a terminal and otherwise json. Messages that are
// logged with a request's context have the ids of the request and of its trace. Values that would
// control a terminal are escaped. Each line is written with one call, when it is logged.
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
	options := &slog.HandlerOptions{Level: parseLevel(level), ReplaceAttr: readable}
	if format == "json" || format == "auto" && !isTerminal(w) {
		return correlated(slog.NewJSONHandler(escaped{w}, options))
	}
	return correlated(slog.NewTextHandler(w, options)) // it quotes what is not printable
}

// readable writes durations as people do, where JSON would have nanoseconds, and leaves out what is
// not known.
func readable(_ []string, attribute slog.Attr) slog.Attr {
	switch v := attribute.Value; {
	case v.Kind() == slog.KindDuration:
		attribute.Value = slog.StringValue(telematics.Words(v.Duration()))
	case v.Kind() == slog.KindAny && v.Any() == nil:
		return slog.Attr{}
	}
	return attribute
}

func correlated(h slog.Handler) *slog.Logger { return slog.New(tracing.LogHandler(h)) }

// escaped writes lines of JSON in which no character controls a terminal: slog escapes C0 alone.
type escaped struct{ io.Writer }

func (e escaped) Write(line []byte) (int, error) {
	if _, err := e.Writer.Write(telematics.EscapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}

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
