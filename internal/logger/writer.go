package logger

import (
	"bytes"
	"io"
	"sync"
	"time"
)

// room is the number of bytes that wait to be written: some 5,000 lines, a choice. Half: a shorter
// pause of the reader costs lines. Double: 1 MiB more memory.
const room = 1 << 20

// Writer passes lines on without ever waiting for who reads them: a pipe whose reader stops, or a
// disk that hangs, must not stop requests. Lines that find no room are dropped and counted. It is
// safe for concurrent use.
type Writer struct {
	to      io.Writer
	wake    chan struct{} // holds one where lines wait
	closing chan struct{}
	ended   chan struct{}

	mu      sync.Mutex
	waiting []byte
	dropped float64         // lines, ever
	missing int             // lines that were dropped since the latest gap was logged
	gap     func(lines int) // logs a gap; nil: nothing does
}

// NewWriter returns a writer in front of another one, which must take whole lines. Close ends it.
func NewWriter(to io.Writer) *Writer {
	w := &Writer{to: to, wake: make(chan struct{}, 1), closing: make(chan struct{}), ended: make(chan struct{})}
	go w.run()
	return w
}

// Write takes a line, or drops it. It never fails and never blocks.
func (w *Writer) Write(line []byte) (int, error) {
	w.mu.Lock()
	if len(w.waiting)+len(line) > room {
		w.drop(1)
	} else {
		w.waiting = append(w.waiting, line...)
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return len(line), nil
}

// drop counts lines that are lost. The caller holds mu.
func (w *Writer) drop(lines int) {
	w.dropped += float64(lines)
	w.missing += lines
}

// run writes what waits, until the writer is closed.
func (w *Writer) run() {
	defer close(w.ended)
	for {
		select {
		case <-w.wake:
			w.flush()
		case <-w.closing:
			w.flush()
			return
		}
	}
}

// flush writes all that waits. After lines were lost, it logs how many.
func (w *Writer) flush() {
	var spare []byte
	for {
		w.mu.Lock()
		lines := w.waiting
		w.waiting = spare[:0]
		w.mu.Unlock()
		if len(lines) == 0 {
			return
		}
		n, err := w.to.Write(lines)
		w.mu.Lock()
		if err != nil {
			w.drop(bytes.Count(lines[n:], []byte("\n")))
		}
		missing := w.missing
		if err == nil {
			w.missing = 0
		}
		gap := w.gap
		w.mu.Unlock()
		if err == nil && missing > 0 && gap != nil {
			gap(missing)
		}
		spare = lines
	}
}

// Dropped returns how many lines were lost: they found no room, or could not be written.
func (w *Writer) Dropped() float64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dropped
}

// Close writes what waits, and ends the writer. It waits for the reader for a second at most.
func (w *Writer) Close() {
	close(w.closing)
	select {
	case <-w.ended:
	case <-time.After(time.Second):
	}
}
