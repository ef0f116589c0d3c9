package logger

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipe remembers what was written, by system call.
type pipe struct {
	stuck chan struct{} // nil: it never is

	mu     sync.Mutex
	writes []string
}

func (p *pipe) Write(text []byte) (int, error) {
	if p.stuck != nil {
		<-p.stuck
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writes = append(p.writes, string(text))
	return len(text), nil
}

// written is what each write contained: its messages.
func (p *pipe) written() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []string
	for _, text := range p.writes {
		var messages []string
		for line := range strings.Lines(text) {
			_, message, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "msg=")
			messages = append(messages, message)
		}
		all = append(all, strings.Join(messages, "|"))
	}
	return all
}

func (p *pipe) wants(t *testing.T, when string, want ...string) {
	t.Helper()
	if got := p.written(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: written %q, want %q", when, got, want)
	}
}

func TestLinesAreWrittenTogetherAHundredMillisecondsAfterTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &pipe{}
		log, flush := NewGathering(to, "info", "text")
		defer flush()
		time.Sleep(time.Hour)
		for n := range 3 {
			log.Info("line", "n", n)
			time.Sleep(40 * time.Millisecond)
		}
		const together = "line n=0|line n=1|line n=2"
		to.wants(t, "120 ms after the first", together)
		log.Debug("not told")
		time.Sleep(time.Second)
		log.Info("fourth")
		time.Sleep(linesFor - time.Millisecond)
		to.wants(t, "before the fourth is due", together)
		time.Sleep(2 * time.Millisecond)
		to.wants(t, "once it is", together, "fourth")
	})
}

func TestAWarningIsWrittenAtOnceBehindWhatCameBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &pipe{}
		log, flush := NewGathering(to, "info", "text")
		log.Info("before")
		log.Warn("warning")
		to.wants(t, "at the warning", "before|warning")
		log.With("vehicle", 7).WithGroup("of").Error("error")
		to.wants(t, "at the error", "before|warning", "error vehicle=7")
		log.Info("after")
		to.wants(t, "behind it", "before|warning", "error vehicle=7")
		flush()
		to.wants(t, "at the end", "before|warning", "error vehicle=7", "after")
		log.Info("last")
		to.wants(t, "behind the end", "before|warning", "error vehicle=7", "after", "last")
	})
}

func TestManyLinesDoNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &pipe{}
		log, flush := NewGathering(to, "info", "json")
		for range 100 {
			log.Info("line", "text", strings.Repeat("x", 1000))
		}
		if n := len(to.written()); n != 3 {
			t.Errorf("100 KB were written %d times before the end, want 3 times", n)
		}
		flush()
		if n := strings.Count(strings.Join(to.writes, ""), "\n"); n != 100 {
			t.Errorf("%d lines of 100", n)
		}
	})
}

// Who logs goes on while the reader of the log rests, up to a bound; then it waits, and nothing is lost.
func TestAStuckReaderCostsNoLine(t *testing.T) {
	to := &pipe{stuck: make(chan struct{})}
	log, flush := NewGathering(to, "info", "text")
	text := strings.Repeat("x", 1<<10)
	told := make(chan int)
	const all = 200
	go func() {
		defer close(told)
		for n := range all {
			log.Info("line", "text", text, "n", n)
			told <- n
		}
	}()
	before := 0
	for waits := false; !waits; {
		select {
		case <-told:
			before++
		case <-time.After(5 * linesFor):
			waits = true
		}
	}
	if most := 2 * linesMost >> 10; before < most/3 || before > most {
		t.Errorf("%d lines of a KiB were taken by a stuck log", before)
	}
	close(to.stuck)
	for range told {
		before++
	}
	flush()
	text = strings.Join(to.writes, "")
	for n := range all {
		if _, rest, ok := strings.Cut(text, fmt.Sprintf(" n=%d\n", n)); ok {
			text = rest
			continue
		}
		t.Fatalf("line %d is lost, or not in its turn", n)
	}
	if before != all {
		t.Errorf("%d of %d lines were taken", before, all)
	}
}

func TestLinesOfManyStayWholeAndInOrder(t *testing.T) {
	const speakers, each = 8, 500
	to := &bytes.Buffer{} // which is guarded by nobody else
	log, flush := NewGathering(to, "info", "text")
	var all sync.WaitGroup
	for s := range speakers {
		all.Go(func() {
			for n := range each {
				level := slog.LevelInfo
				if n%100 == 99 {
					level = slog.LevelWarn
				}
				log.Log(t.Context(), level, "line", "speaker", s, "n", n, "text", strings.Repeat("x", 100))
			}
		})
	}
	all.Wait()
	flush()
	next := [speakers]int{}
	for line := range strings.Lines(to.String()) {
		var s, n int
		_, said, _ := strings.Cut(line, "msg=line ")
		if _, err := fmt.Sscanf(said, "speaker=%d n=%d text=xxx", &s, &n); err != nil || !strings.HasSuffix(line, "xxx\n") {
			t.Fatalf("a torn line: %q", line)
		}
		if n != next[s] {
			t.Fatalf("speaker %d: line %d follows line %d", s, n, next[s]-1)
		}
		next[s]++
	}
	for s, n := range next {
		if n != each {
			t.Errorf("speaker %d: %d of %d lines", s, n, each)
		}
	}
}
