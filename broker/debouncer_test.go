package broker

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
)

func TestDebouncer_FlushesInBatchesOneAfterAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done []int
		var lists, busy atomic.Int32
		var background sync.WaitGroup
		l := debouncer[int]{after: 50 * time.Millisecond, background: &background, flush: func(_ context.Context, list []int) {
			if busy.Add(1) > 1 {
				t.Error("two flushes run concurrently")
			}
			time.Sleep(time.Second) // a slow server
			done = append(done, list...)
			lists.Add(1)
			busy.Add(-1)
		}}
		var asked []int
		for i := range 100 {
			l.add(t.Context(), i)
			asked = append(asked, i)
			time.Sleep(20 * time.Millisecond)
		}
		background.Wait()
		if !slices.Equal(done, asked) || lists.Load() > 4 {
			t.Errorf("flushed in %d lists: %v; want at most 4 lists with all items in order", lists.Load(), done)
		}
		l.add(t.Context(), 100) // after a pause
		background.Wait()
		assert.Equal(t, len(done), 101, "items flushed")
	})
}
