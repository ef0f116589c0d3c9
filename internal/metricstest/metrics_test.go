package metricstest_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"motorpool/internal/assert"
	"motorpool/internal/metricstest"
	"motorpool/internal/require"
)

func TestRead_EqualsGather(t *testing.T) {
	registry := prometheus.NewRegistry()
	create := promauto.With(registry)
	create.NewCounterVec(prometheus.CounterOpts{
		Name: "dropped_total", Help: "x",
	}, []string{"reason", "kind"}).WithLabelValues("malformed", "report").Add(3)
	create.NewHistogram(prometheus.HistogramOpts{Name: "wait_seconds", Help: "x", Buckets: []float64{1}}).Observe(2)
	create.NewGaugeVec(prometheus.GaugeOpts{Name: "key_info", Help: "x"}, []string{"key"}).WithLabelValues("k-1").Set(1)
	server := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer server.Close()

	gathered, err := metricstest.Gather(registry)
	require.NoError(t, err)
	read, err := metricstest.Read(t.Context(), http.DefaultClient, server.URL)
	require.NoError(t, err)
	want := metricstest.Values{
		`dropped_total{kind="report", reason="malformed"}`: 3,
		`wait_seconds_bucket{le="1"}`:                      0, `wait_seconds_bucket{le="+Inf"}`: 1,
		"wait_seconds_count": 1, "wait_seconds_sum": 2,
		`key_info{key="k-1"}`: 1,
	}
	if !maps.Equal(gathered, want) || !maps.Equal(read, want) {
		t.Errorf("gathered %v, read %v, want %v", gathered, read, want)
	}
	assert.Equal(t, read.Label("key_info", "key"), "k-1", "the label")
}

func TestRead_FailsWithoutMetrics(t *testing.T) {
	for name, handler := range map[string]http.HandlerFunc{
		"not found":           http.NotFound,
		"not the text format": func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"counts":{}}`)) },
	} {
		server := httptest.NewServer(handler)
		if _, err := metricstest.Read(t.Context(), http.DefaultClient, server.URL); err == nil {
			t.Errorf("%s: Read returned no error", name)
		}
		server.Close()
	}
}
