package ingest

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestInBatches_WaitsForMoreWhileFewAreQueued(t *testing.T) {
	const wait = 50 * time.Millisecond
	for name, c := range map[string]struct {
		queued int             // items queued at first
		then   []time.Duration // pauses before further items
		want   []int           // sizes of the batches
		took   time.Duration   // until the first batch
	}{
		"one item": {queued: 1, want: []int{1}, took: wait},
		"items within the wait": {
			queued: 1, then: []time.Duration{20 * time.Millisecond, 20 * time.Millisecond}, want: []int{3}, took: wait,
		},
		"an item after the wait": {queued: 1, then: []time.Duration{60 * time.Millisecond}, want: []int{1, 1}, took: wait},
		"two full batches":       {queued: 2 * MaxBatch, want: []int{MaxBatch, MaxBatch}, took: 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				queue := make(chan int, 4*MaxBatch)
				for n := range c.queued {
					queue <- n
				}
				ctx, stop := context.WithCancel(t.Context())
				var sizes []int
				began, first := time.Now(), time.Duration(-1)
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					InBatches(ctx, queue, wait, time.Second, func(batch []int) {
						if first < 0 {
							first = time.Since(began)
						}
						sizes = append(sizes, len(batch))
					})
				}()
				for n, pause := range c.then {
					time.Sleep(pause)
					queue <- n
				}
				time.Sleep(time.Second)
				stop()
				<-ended
				if !slices.Equal(sizes, c.want) || first != c.took {
					t.Errorf("batches of %v, the first after %v, want %v after %v", sizes, first, c.want, c.took)
				}
			})
		})
	}
}

func TestInBatches_HandlesRemainingItemsWithoutWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue := make(chan int, 10)
		ctx, stop := context.WithCancel(t.Context())
		queue <- 1
		time.AfterFunc(10*time.Millisecond, stop)
		began, handled := time.Now(), 0
		InBatches(ctx, queue, time.Minute, time.Second, func(batch []int) { handled += len(batch) })
		if took := time.Since(began); handled != 1 || took != 10*time.Millisecond {
			t.Errorf("%d items handled after %v, want 1 after 10 ms", handled, took)
		}
	})
}
