//go:build clockfault

package app

import (
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// clockFaultFile is the environment variable with the name of a file that contains the error of the
// clock, a Go duration.
const clockFaultFile = "MOTORPOOL_CLOCK_FAULT"

var clockFault struct {
	once  sync.Once
	ahead atomic.Int64
}

// now is this instance's clock: the machine's, ahead by the time that the fault harness writes to a
// file. Timers use the machine's clock.
func now() time.Time {
	clockFault.once.Do(func() {
		readClockFault()
		go func() {
			for range time.Tick(10 * time.Millisecond) {
				readClockFault()
			}
		}()
	})
	return time.Now().Add(time.Duration(clockFault.ahead.Load()))
}

func readClockFault() {
	text, err := os.ReadFile(os.Getenv(clockFaultFile))
	ahead, invalid := time.ParseDuration(strings.TrimSpace(string(text)))
	if err != nil || invalid != nil { // no file: no fault
		ahead = 0
	}
	clockFault.ahead.Store(int64(ahead))
}
