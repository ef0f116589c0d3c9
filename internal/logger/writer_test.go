package logger

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// stopped is a writer whose reader stops and goes on.
type stopped struct {
	lines chan string
	err   atomic.Pointer[error]
}

func (s *stopped) Write(p []byte) (int, error) {
	if err := s.err.Load(); err != nil {
		return 0, *err
	}
	s.lines <- string(p)
	return len(p), nil
}

func TestWriter_NeverWaitsForAReaderThatStops(t *testing.T) {
	reader, pipe, err := os.Pipe()
	require.NoError(t, err)
	w := NewWriter(pipe)
	log := New(w, "info", "json")
	text := strings.Repeat("x", 1000)
	const lines = 5000 // five times as much as there is room for, in pipe and writer
	began := time.Now()
	for n := range lines {
		log.Info("filler", "text", text, "n", n)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("%d lines without a reader took %v", lines, took)
	}
	dropped := w.Dropped()
	if dropped < lines/2 || dropped >= lines {
		t.Errorf("%v of %d lines are counted as dropped", dropped, lines)
	}
	// The reader goes on: it gets what waited, and how many lines are missing.
	found := make(chan int)
	go func() {
		read := 0
		for scanner := bufio.NewScanner(reader); scanner.Scan(); {
			if strings.Contains(scanner.Text(), `"lines":`) {
				found <- read
				break
			}
			read++
		}
		close(found)
	}()
	select {
	case read, ok := <-found:
		if !ok || float64(read)+dropped != lines {
			t.Errorf("%d lines came and %v were dropped, want %d together (the gap was logged: %v)", read, dropped, lines, ok)
		}
	case <-time.After(time.Minute):
		t.Error("the log does not say that lines are missing")
	}
	w.Close()
	_, _ = pipe.Close(), reader.Close()
}

func TestWriter_CloseWritesWhatWaits(t *testing.T) {
	to := &stopped{lines: make(chan string, 100)}
	w := NewWriter(to)
	log := New(w, "info", "json")
	for range 50 {
		log.Info("a line")
	}
	w.Close()
	close(to.lines)
	n := 0
	for text := range to.lines {
		n += strings.Count(text, "\n")
	}
	assert.Equal(t, n, 50, "lines written")
}

func TestWriter_LinesThatCannotBeWrittenAreCounted(t *testing.T) {
	to := &stopped{lines: make(chan string, 100)}
	full := errors.New("no space left on device")
	to.err.Store(&full)
	w := NewWriter(to)
	log := New(w, "info", "json")
	for range 3 {
		log.Info("lost")
	}
	for deadline := time.Now().Add(time.Minute); w.Dropped() < 3; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%v of 3 lines are counted", w.Dropped())
		}
	}
	to.err.Store(nil)
	log.Info("written")
	w.Close()
	close(to.lines)
	var all strings.Builder
	for text := range to.lines {
		all.WriteString(text)
	}
	if text := all.String(); !strings.Contains(text, "written") || !strings.Contains(text, `"lines":3`) {
		t.Errorf("the log has %q, want the line and the gap of 3", text)
	}
}
