package brokertest

import (
	"bytes"
	"sync"
	"testing"
	"time"

	"motorpool/internal/require"
)

// Log is a log writer that keeps all lines. It is safe for concurrent use.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *Log) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *Log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// timeout bounds every wait of the contracts.
const timeout = time.Minute

// race calls a function n times concurrently, for one instance and the other by turns.
func race[I any](n int, here, there I, call func(i int, at I)) {
	var wg sync.WaitGroup
	for i := range n {
		at := [...]I{here, there}[i%2]
		wg.Go(func() { call(i, at) })
	}
	wg.Wait()
}

// slower is how many times longer a busy machine may take than an idle one.
const slower = 6

// Eventually polls until a condition holds, and fails the test after the time that an idle machine
// may take, several times over.
func Eventually(t *testing.T, within time.Duration, what string, holds func() bool) {
	t.Helper()
	within *= slower
	for deadline := time.Now().Add(within); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Late(t, "not within %v: %s", within, what)
		}
	}
}
