package transitions

import (
	"github.com/prometheus/client_golang/prometheus"

	"motorpool/rental"
)

type metrics struct {
	opened  *prometheus.CounterVec
	ended   *prometheus.CounterVec
	refused *prometheus.CounterVec
	took    *prometheus.HistogramVec
}

func newMetrics(registerer prometheus.Registerer) *metrics {
	m := &metrics{
		opened: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "motorpool_rental_transitions_opened_total", Help: "Starts, pauses, resumptions and ends of rentals that were begun.",
		}, []string{"kind"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "motorpool_rental_transitions_ended_total",
			Help: "Transitions that have ended, by result: done, or the code of the error.",
		}, []string{"kind", "result"}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "motorpool_rental_return_checks_failed_total", Help: "Conditions of returns that were not met.",
		}, []string{"check"}),
		took: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "motorpool_rental_transition_seconds", Help: "Time from the request to the end of a transition that is done.",
			Buckets: []float64{0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60, 300},
		}, []string{"kind"}),
	}
	registerer.MustRegister(m.opened, m.ended, m.refused, m.took)
	for _, k := range rental.TransitionKinds {
		m.opened.WithLabelValues(string(k))
		m.ended.WithLabelValues(string(k), "done")
		m.took.WithLabelValues(string(k))
	}
	for _, c := range rental.CheckNames {
		m.refused.WithLabelValues(string(c))
	}
	return m
}

func (m *metrics) end(t rental.Transition) {
	result := string(t.Code())
	if result == "" {
		result = "done"
		m.took.WithLabelValues(string(t.Kind)).Observe(max(0, t.Ended.Sub(t.Requested)).Seconds())
	}
	m.ended.WithLabelValues(string(t.Kind), result).Inc()
}
