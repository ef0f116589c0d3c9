package broker

import (
	"testing"
	"time"

	"motorpool/internal/assert"
)

func TestRetransmitAfter_FirstIsAboutTwoSeconds(t *testing.T) {
	for _, jitter := range []float64{0, 0.25, 0.5, 0.75, 0.999} {
		if d := retransmitAfter(minRetransmit, 1, false, jitter); d < 1600*time.Millisecond || d > 2400*time.Millisecond {
			t.Errorf("with jitter %g: after %v, want 2 s ± 20 %%", jitter, d)
		}
	}
}

func TestRetransmitAfter_GrowsWithAttemptsAndDoublesAfterReceived(t *testing.T) {
	for attempt := 1; attempt < 10; attempt++ {
		now, next := retransmitAfter(minRetransmit, attempt, false, 0.5), retransmitAfter(minRetransmit, attempt+1, false, 0.5)
		if next <= now {
			t.Errorf("after attempt %d: %v, then %v; want it to grow", attempt, now, next)
		}
		assert.Equal(t, retransmitAfter(minRetransmit, attempt, true, 0.5), 2*now, "after attempt %d and a received answer", attempt)
	}
}
