package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"motorpool/store/groupcommit"
	"motorpool/store/pg"
)

// crowds are how many call at once.
var crowds = []int{1, 16, 256}

// crowded runs a benchmark with each crowd.
func crowded(b *testing.B, run func(b *testing.B, callers int)) {
	for _, callers := range crowds {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) { run(b, callers) })
	}
}

// roundSize is how many calls a round has. A crowd gathers anew in each, so it is many times the greatest crowd.
const roundSize = 4096

// callers make b.N calls, so many at a time, each with something of its own. What a round needs is made between
// rounds, and is not measured.
func callers[T any](b *testing.B, crowd int, fresh func(n int) []T, call func(T) error) {
	b.ReportAllocs()
	b.ResetTimer()
	for left := b.N; left > 0 && !b.Failed(); {
		b.StopTimer()
		things := fresh(min(left, roundSize))
		b.StartTimer()
		var next atomic.Int64
		var wg sync.WaitGroup
		for range crowd {
			wg.Go(func() {
				for i := next.Add(1) - 1; i < int64(len(things)); i = next.Add(1) - 1 {
					if err := call(things[i]); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		wg.Wait()
		left -= len(things)
	}
	b.StopTimer()
}

// countBatches replaces a batcher by one that counts its batches.
func countBatches[Req, Res any](db *pg.DB, batcher **groupcommit.Batcher[Req, Res], run func(context.Context, []Req) ([]Res, error)) *atomic.Int64 {
	counted := new(atomic.Int64)
	*batcher = pg.NewBatcher(db, func(ctx context.Context, reqs []Req) ([]Res, error) {
		counted.Add(1)
		return run(ctx, reqs)
	})
	return counted
}
