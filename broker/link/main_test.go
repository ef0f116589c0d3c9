package link_test

import (
	"bytes"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alarms are the warnings and errors that instances log.
type alarms struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (a *alarms) Write(line []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.Write(line)
}

func (a *alarms) String() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.text.String()
}
