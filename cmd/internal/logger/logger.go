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
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: least(level)}))
	}
	return slog.New(tint.NewTextHandler(w, &tint.Options{Level: least(level), TimeFormat: time.TimeOnly, NoColor: !isTerminal(w)}))
}

// NewGathering returns a logger for who has much to say: except on a terminal, lines are gathered for at most 100 ms, so that many share one
// system call. A warning, or what is worse, is written at once, behind all that came before. Whoever ends must call
// flush, which writes what still waits; later lines are written at once.
//
// Text that is not for a terminal is slog's own, with the date: the handler that colours takes three times as long for a line.
func NewGathering(w io.Writer, level, format string) (log *slog.Logger, flush func()) {
	if isTerminal(w) {
		return New(w, level, format), func() {}
	}
	lines := newLines(w)
	options := &slog.HandlerOptions{Level: least(level)}
	var handler slog.Handler = slog.NewTextHandler(lines, options)
	if format == "json" {
		handler = slog.NewJSONHandler(lines, options)
	}
	return slog.New(urgent{handler, lines}), lines.end
}

func least(level string) slog.Level {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		return slog.LevelInfo // settings were checked before
	}
	return least
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
