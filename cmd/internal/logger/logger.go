// Package logger makes the logger that all programs share: colours on a terminal, slog's text
// elsewhere, or JSON. Each line is written with one system call when it is logged.
package logger

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
)

// New returns a logger with a level (debug, info, warn or error; info for anything else) and a
// format (text or json).
func New(w io.Writer, level, format string) *slog.Logger {
	options := &slog.HandlerOptions{Level: parseLevel(level)}
	switch {
	case format == "json":
		return slog.New(slog.NewJSONHandler(w, options))
	case isTerminal(w):
		return slog.New(tint.NewTextHandler(w, &tint.Options{Level: options.Level, TimeFormat: time.TimeOnly}))
	default:
		return slog.New(slog.NewTextHandler(w, options))
	}
}

func parseLevel(s string) slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(s)); err != nil {
		return slog.LevelInfo // programs check their settings before
	}
	return level
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
