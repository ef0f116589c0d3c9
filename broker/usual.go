package broker

import (
	"sync/atomic"
	"time"
)

// usual is about the median of how long it takes until the first word of a unit about a command is handled here, with what it waits for
// us: where we are slow, to ask again makes us slower. Each that takes longer moves it up by a step, each that is faster down:
// what is lost, and heard after a repetition, moves it no further than what is slow, while it is less than half.
type usual struct{ median atomic.Int64 }

const (
	usualStep  = 1.02
	leastUsual = leastResend / 2  // what is less makes no difference
	mostUsual  = 10 * time.Second // what a cellular network takes
)

func (u *usual) wait() time.Duration { return max(leastUsual, time.Duration(u.median.Load())) }

// heard notes how long one has taken. A step that is lost between two that come at once does no harm.
func (u *usual) heard(took time.Duration) {
	median := float64(u.wait())
	if took = min(took, mostUsual); took > time.Duration(median) {
		median = min(median*usualStep, float64(took))
	} else {
		median = max(median/usualStep, float64(took))
	}
	u.median.Store(int64(median))
}
