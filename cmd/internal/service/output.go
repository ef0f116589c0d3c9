package service

import (
	"io"
	"log/slog"
	"os"
)

// Output returns a logger that writes down in a file what a process writes, line by line, next to messages about it.
func Output(path string) (*slog.Logger, io.Closer, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: lineAlone})), file, nil
}

// lineAlone leaves of a record what the process wrote.
func lineAlone(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, slog.LevelKey, "server":
		return slog.Attr{}
	case slog.MessageKey:
		if a.Value.String() == "server output" {
			return slog.Attr{}
		}
	}
	return a
}
