package alerts

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/alerts"
)

// metrics are the metrics of sweeps, explained in docs/metrics.md.
type metrics struct {
	open      *prometheus.GaugeVec
	seconds   prometheus.Histogram
	failures  *prometheus.CounterVec
	lastSweep prometheus.Gauge
	lost      prometheus.Counter
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	create := promauto.With(registerer)
	m := &metrics{
		open: create.NewGaugeVec(prometheus.GaugeOpts{
			Name: "motorpool_alerts_open",
			Help: "Open alerts, at the instance that evaluates them; 0 at the others.",
		}, []string{"rule", "severity"}),
		seconds: create.NewHistogram(prometheus.HistogramOpts{
			Name: "motorpool_alert_sweep_seconds", Help: "Durations of sweeps, in which alerts open and are cleared.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		failures: create.NewCounterVec(prometheus.CounterOpts{
			Name: "motorpool_alert_sweep_failures_total", Help: "Rules that a sweep could not evaluate.",
		}, []string{"rule"}),
		lastSweep: create.NewGauge(prometheus.GaugeOpts{
			Name: "motorpool_alerts_swept_timestamp_seconds",
			Help: "Time at which this instance last completed a sweep of all rules; before the first, of its start.",
		}),
		lost: create.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_alarms_lost_total",
			Help: "Alarms of units that were not stored as alerts, because Postgres was unavailable for long.",
		}),
	}
	for _, c := range conditions {
		m.failures.WithLabelValues(string(c.rule))
	}
	m.setOpen(nil)
	m.lastSweep.SetToCurrentTime()
	return m
}

// kind is what open alerts are counted by.
type kind struct {
	rule     alerts.Rule
	severity alerts.Severity
}

// setOpen sets the numbers of open alerts; 0 where there are none.
func (m *metrics) setOpen(counts map[kind]float64) {
	for _, setting := range alerts.Defaults() {
		for _, severity := range alerts.Severities {
			m.open.WithLabelValues(string(setting.Rule), string(severity)).Set(counts[kind{setting.Rule, severity}])
		}
	}
}
