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

func TestRetryAfter_FiveAttemptsInAll(t *testing.T) {
	for declines, want := range map[int]time.Duration{1: time.Hour, 2: 24 * time.Hour, 3: 72 * time.Hour, 4: 168 * time.Hour} {
		if got, ok := retryAfter(declines); !ok || got != want {
			t.Errorf("after %d declines the retry is in %v (%v), want %v", declines, got, ok, want)
		}
	}
	for _, declines := range []int{5, 6, 100} {
		if got, ok := retryAfter(declines); ok {
			t.Errorf("after %d declines the retry is in %v, want none", declines, got)
		}
	}
}
