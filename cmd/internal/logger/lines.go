package logger

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"
)

const (
	// linesFor is how long a line waits at most for others to be written with. It is what a sudden death loses.
	linesFor = 100 * time.Millisecond
	// linesMost is the number of bytes above which they are written at once.
	linesMost = 32 << 10
)

// lines is a writer that gathers lines and writes them with one system call, in their order: 100 ms after
// the first of them, or once they are more than 32 KiB. Each line comes with one Write. It is safe for concurrent use.
//
// While the writer below is stuck, lines are taken until they are too many; then whoever has one more waits for it.
type lines struct {
	w     io.Writer
	timer *time.Timer // runs while lines wait

	writing sync.Mutex // held from taking the lines until they are written, so that they keep their order; before mu
	spare   []byte     // what the next lines go into; guarded by writing

	mu      sync.Mutex // guards what follows
	waiting []byte
	ended   bool // lines are written at once
}

func newLines(w io.Writer) *lines {
	l := &lines{w: w}
	l.timer = time.AfterFunc(linesFor, func() { _ = l.flush() }) // who logged is gone, and nobody else can be told
	return l
}

func (l *lines) Write(line []byte) (int, error) {
	if l.add(line) {
		return len(line), l.flush()
	}
	return len(line), nil
}

// add reports whether the lines must be written at once.
func (l *lines) add(line []byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.timer.Reset(linesFor)
	}
	l.waiting = append(l.waiting, line...)
	return l.ended || len(l.waiting) > linesMost
}

// flush writes what waits, and returns when it, and all before it, is written.
func (l *lines) flush() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	batch := l.waiting
	l.waiting = l.spare[:0]
	l.mu.Unlock()
	l.spare = batch // nobody takes it before the next flush
	if len(batch) == 0 {
		return nil
	}
	_, err := l.w.Write(batch)
	return err
}

// end writes what waits. Lines that come later are written at once.
func (l *lines) end() {
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	_ = l.flush() // as above
}

// urgent has warnings and errors written at once, with all that was said before them.
type urgent struct {
	slog.Handler
	lines *lines
}

func (u urgent) Handle(ctx context.Context, r slog.Record) error {
	err := u.Handler.Handle(ctx, r)
	if r.Level >= slog.LevelWarn {
		err = errors.Join(err, u.lines.flush())
	}
	return err
}

func (u urgent) WithAttrs(attrs []slog.Attr) slog.Handler {
	return urgent{u.Handler.WithAttrs(attrs), u.lines}
}

func (u urgent) WithGroup(name string) slog.Handler {
	return urgent{u.Handler.WithGroup(name), u.lines}
}
