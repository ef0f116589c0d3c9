// Package metricstest reads metrics in tests.
package metricstest

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/internal/require"
	"motorpool/metrics"
)

// Sum returns the sum of samples of a registry, which are named as in metrics.Values. Each must
// exist.
func Sum(t testing.TB, registry prometheus.Registerer, samples ...string) int64 {
	t.Helper()
	values, err := metrics.Gather(registry.(prometheus.Gatherer))
	require.NoError(t, err)
	var sum float64
	for _, sample := range samples {
		value, ok := values[sample]
		if !ok {
			t.Fatalf("there is no sample %s", sample)
		}
		sum += value
	}
	return int64(sum)
}
