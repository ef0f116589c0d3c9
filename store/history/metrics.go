package history

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"motorpool/telematics/samples"
)

// metrics are explained in docs/metrics.md.
type metrics struct {
	stored  prometheus.Counter
	dropped *prometheus.CounterVec
}

func newMetrics(registerer prometheus.Registerer, waiting func() int) *metrics {
	factory := promauto.With(registerer)
	m := &metrics{
		stored: factory.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_telemetry_samples_total", Help: "Samples that were written to the telemetry history.",
		}),
		dropped: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "motorpool_telemetry_samples_dropped_total",
			Help: "Samples that are not in the telemetry history. full: too many waited for Postgres; too_old: older than the history; " +
				"no_vehicle: reports of units that could not be looked up; moved: of another vehicle or agency; refused: " +
				"no partition for the day.",
		}, []string{"reason"}),
	}
	factory.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_telemetry_samples_waiting", Help: "Samples that wait to be written to the telemetry history.",
	}, func() float64 { return float64(waiting()) })
	for _, reason := range []samples.Reason{samples.TooOld, samples.Full, samples.NoVehicle, samples.Moved, samples.Refused} {
		m.dropped.WithLabelValues(string(reason))
	}
	return m
}

func (m *metrics) drop(reason samples.Reason, n int) {
	m.dropped.WithLabelValues(string(reason)).Add(float64(n))
}
