package commands

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/store/groupcommit"
	"motorpool/store/storetest"
)

// BenchmarkGroup measures the cost of sharing a batch where the batch itself costs nothing.
func BenchmarkGroup(b *testing.B) {
	storetest.Concurrently(b, func(b *testing.B, callers int) {
		var shared atomic.Int64
		g := groupcommit.New(
			groupcommit.Limits{MaxBatch: 256, Timeout: 3 * time.Second},
			func(_ context.Context, reqs []int) ([]int, error) {
				shared.Add(1)
				return reqs, nil
			},
		)
		numbers := make([]int, storetest.RoundSize)
		storetest.Call(b, callers, func(n int) []int { return numbers[:n] }, func(i int) error {
			_, err := g.Do(b.Context(), i)
			return err
		})
		b.ReportMetric(float64(b.N)/float64(shared.Load()), "calls/batch")
	})
}
