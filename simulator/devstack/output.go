package devstack

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// keptLines is how much of a child's output an error can quote.
const keptLines = 40

// output logs each line that a child writes, and keeps the first and the last ones.
type output struct {
	log    *slog.Logger
	server string

	mu      sync.Mutex // guards what follows
	partial []byte     // the line that is not complete yet
	lines   []string   // the last ones
	// The first lines: a busy server may write more than keptLines before its readiness is checked.
	first []string
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.partial = append(o.partial, b...)
	for {
		line, rest, complete := bytes.Cut(o.partial, []byte("\n"))
		if !complete {
			return len(b), nil
		}
		o.keep(string(line))
		o.partial = rest
	}
}

func (o *output) keep(line string) {
	o.log.Debug("server output", "server", o.server, "line", line)
	if len(o.first) < keptLines {
		o.first = append(o.first, line)
	}
	o.lines = append(o.lines, line)
	if len(o.lines) > keptLines {
		o.lines = o.lines[1:]
	}
}

// tail returns the last lines, the incomplete one included.
func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return strings.Join(append(o.lines[:len(o.lines):len(o.lines)], string(o.partial)), "\n")
}

// contains reports whether text is among the first lines, or the last.
func (o *output) contains(text string) bool {
	o.mu.Lock()
	first := strings.Join(o.first, "\n")
	o.mu.Unlock()
	return strings.Contains(first, text) || strings.Contains(o.tail(), text)
}
