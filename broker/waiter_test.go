package broker

import (
	"testing"

	"github.com/google/uuid"

	"motorpool/telematics"
)

func TestEachWaiterIsAskedForOnceARoundHoweverLongAQuestionTakes(t *testing.T) {
	var ws waiters
	for range 1000 {
		ws.add(&telematics.Command{ID: uuid.Must(uuid.NewV7())})
	}
	for _, steps := range [][]int{{1}, {3, 1, 16, 2}, {40, 1, 5}} { // in sixteenths of a second
		asked := map[telematics.CommandID]int{}
		from, rounds := 0, 100
		for i := 0; from < rounds*pollParts; i++ {
			to := min(from+steps[i%len(steps)], rounds*pollParts)
			found := ws.parts(from, to)
			if len(found.unheard) == 0 || len(found.received) > 0 || len(found.unheard) == 1000 != (to-from >= pollParts) {
				t.Fatalf("parts %d to %d: %d of 1000", from, to, len(found.unheard))
			}
			for _, id := range found.unheard {
				asked[id]++
			}
			from = to
		}
		for id := range ws.byID {
			if n := asked[id]; n > rounds || steps[0] < pollParts && n != rounds || n < rounds/3 {
				t.Fatalf("steps %v: %s was asked for %d times in %d rounds", steps, id, n, rounds)
			}
		}
	}
}
