package health

import (
	"github.com/prometheus/client_golang/prometheus"
)

// readyCheck is the result of each check, docs/metrics.md explains it.
var readyCheck = prometheus.NewDesc("motorpool_ready", "1 where a check of readiness succeeds, else 0.", []string{"check"}, nil)

// Describe implements prometheus.Collector.
func (r *Readiness) Describe(to chan<- *prometheus.Desc) { to <- readyCheck }

// Collect implements prometheus.Collector. A draining instance still reports whether its
// dependencies work.
func (r *Readiness) Collect(to chan<- prometheus.Metric) {
	for i, err := range r.recent(runEvery) {
		value := 1.0
		if err != nil {
			value = 0
		}
		to <- prometheus.MustNewConstMetric(readyCheck, prometheus.GaugeValue, value, r.checks[i].Name)
	}
}
