// Package logger makes the logger that all programs share: readable on a terminal,
// without colours elsewhere, or JSON.
package logger

import (
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/lmittmann/tint"
)

// New returns a logger with a level (debug, info, warn or error; info for anything
// else) and a format (text or json).
func New(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo // settings were checked before
	}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: least, TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)}))
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
