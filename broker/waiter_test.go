package broker

import (
	"testing"

	"github.com/google/uuid"

	"motorpool/telematics"
)

func TestEachWaiterHasItsTurnInASecondAndOfACrowdInItsOrder(t *testing.T) {
	for _, crowd := range []int{1, 17, 1000, pollMost, 3 * pollMost} {
		var ws waiters
		for range crowd {
			ws.add(&telematics.Command{ID: uuid.Must(uuid.NewV7())})
		}
		asked := map[telematics.CommandID]int{}
		total := 0
		for _, parts := range []int{1, 3, 1, 16, 2, 40, 1} {
			found := ws.next(dueWaiters(ws.count(), parts))
			n := len(found.unheard)
			if len(found.received) > 0 || n > crowd || n > pollMost*parts/pollParts+1 || n < min(crowd, pollMost)*min(parts, pollParts)/pollParts {
				t.Fatalf("%d parts of a second: %d of %d", parts, n, crowd)
			}
			total += n
			for _, id := range found.unheard {
				asked[id]++
			}
		}
		for id := range ws.byID {
			if n := asked[id]; n < total/crowd || n > total/crowd+1 {
				t.Fatalf("of %d, %s was asked about %d times, the others %d", crowd, id, n, total/crowd)
			}
		}
	}
}

func TestWhoWaitsNoMoreIsNotAskedAbout(t *testing.T) {
	var ws waiters
	gone, stays := uuid.Must(uuid.NewV7()), uuid.Must(uuid.NewV7())
	ws.add(&telematics.Command{ID: gone})
	ws.add(&telematics.Command{ID: stays})
	ws.remove(gone)
	ws.remove(gone)
	if found := ws.next(10).unheard; len(found) != 1 || found[0] != stays {
		t.Errorf("asked about %v, want %v", found, stays)
	}
}
