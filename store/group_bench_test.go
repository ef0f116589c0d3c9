package store

import (
	"context"
	"testing"
)

// BenchmarkGroup is what sharing costs where the batch itself costs nothing.
func BenchmarkGroup(b *testing.B) {
	crowded(b, func(b *testing.B, crowd int) {
		g := newGroup(Config{}.withDefaults(), func(_ context.Context, reqs []int) ([]int, error) { return reqs, nil })
		shared := batches(g)
		numbers := make([]int, roundSize)
		callers(b, crowd, func(n int) []int { return numbers[:n] }, func(i int) error {
			_, err := g.do(b.Context(), i)
			return err
		})
		b.ReportMetric(float64(b.N)/float64(shared.Load()), "calls/batch")
	})
}
