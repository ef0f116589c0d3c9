package broker

import (
	"testing"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/tracing"
)

func TestWaiters_EachIsPolledOncePerSecondInOrder(t *testing.T) {
	const seconds = 12
	for _, waiting := range []int{1, 17, pollMost, 3 * pollMost} {
		// Steps in sixteenths of a second.
		for _, steps := range [][]int{{1}, {3, 1, 9, 2}, {16}, {40, 1, 5}} {
			var ws waiters
			for range waiting {
				ws.add(&telematics.Command{ID: uuid.Must(uuid.NewV7())}, tracing.Span{})
			}
			polls := map[telematics.CommandID]int{}
			from, total := 0, 0
			for i := 0; from < seconds*pollParts; i++ {
				to := min(from+steps[i%len(steps)], seconds*pollParts)
				found := ws.next(dueWaiters(ws.count(), from, to))
				n := len(found.unanswered)
				if len(found.received) > 0 || n > min(waiting, pollMost) {
					t.Fatalf("step of %d sixteenths: %d of %d waiters in one poll, or some as received", to-from, n, waiting)
				}
				total += n
				for _, id := range found.unanswered {
					polls[id]++
				}
				from = to
			}
			if want := seconds * min(waiting, pollMost); total > want || steps[0] <= pollParts && total != want || total < want/3 {
				t.Errorf("steps %v: %d polls of %d waiters in %d s, want %d", steps, total, waiting, seconds, want)
			}
			for id := range ws.byID {
				if n := polls[id]; n < total/waiting || n > total/waiting+1 {
					t.Fatalf("steps %v: of %d waiters, %s was polled %d times, the average is %d", steps, waiting, id, n, total/waiting)
				}
			}
		}
	}
}

func TestWaiters_RemovedOneIsNotPolled(t *testing.T) {
	var ws waiters
	gone, stays := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	ws.add(&telematics.Command{ID: gone}, tracing.Span{})
	ws.add(&telematics.Command{ID: stays}, tracing.Span{})
	ws.remove(gone)
	ws.remove(gone)
	if found := ws.next(10).unanswered; len(found) != 1 || found[0] != stays {
		t.Errorf("polled %v, want %v", found, stays)
	}
}
