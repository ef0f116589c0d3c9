// Package metricstest reads Prometheus metrics: those of a running process, or of a registry.
package metricstest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"motorpool/internal/require"
)

// Values are samples by their names and labels, as PromQL writes them: up,
// dropped_total{kind="report", reason="malformed"}. A histogram has samples with the suffixes
// _bucket, _count and _sum.
type Values map[string]float64

// Read requests the metrics of a process from the URL of its endpoint. It fails where the process
// does not answer with metrics.
func Read(ctx context.Context, client *http.Client, url string) (Values, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("read metrics: %s", response.Status)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	return valuesOf(slices.Collect(maps.Values(families)))
}

// Gather reads the metrics of a registry. It fails with the registry's error.
func Gather(g prometheus.Gatherer) (Values, error) {
	families, err := g.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	return valuesOf(families)
}

func valuesOf(families []*dto.MetricFamily) (Values, error) {
	samples, err := expfmt.ExtractSamples(&expfmt.DecodeOptions{}, families...)
	if err != nil {
		return nil, fmt.Errorf("read metrics: %w", err)
	}
	values := make(Values, len(samples))
	for _, sample := range samples {
		values[sample.Metric.String()] = float64(sample.Value)
	}
	return values, nil
}

// Label returns the value of the label of a metric that has one sample with one label; empty: there
// is no such metric.
func (v Values) Label(name, label string) string {
	for sample := range v {
		if value, ok := strings.CutPrefix(sample, name+"{"+label+`="`); ok {
			return strings.TrimSuffix(value, `"}`)
		}
	}
	return ""
}

// Sum returns the sum of samples of a registry, which are named as in Values. Each must exist.
func Sum(t testing.TB, registry prometheus.Registerer, samples ...string) int64 {
	t.Helper()
	values, err := Gather(registry.(prometheus.Gatherer))
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
