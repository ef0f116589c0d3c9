package charging

import (
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestBackoff_GrowsWhileAttemptsChangeNothing(t *testing.T) {
	for tries, want := range map[int]time.Duration{
		0: 5 * time.Second, 1: 5 * time.Second, 2: 10 * time.Second, 3: 30 * time.Second, 4: time.Minute, 5: 5 * time.Minute,
		6: 5 * time.Minute, 1000: 5 * time.Minute,
	} {
		assert.Equal(t, backoffAfter(tries), want, "after %d tries the backoff", tries)
	}
}
