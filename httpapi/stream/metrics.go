package stream

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are what a feed counts. docs/metrics.md explains each.
type metrics struct{ cut, followed prometheus.Counter }

func newMetrics(registerer prometheus.Registerer, open func() float64) metrics {
	create := promauto.With(registerer)
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "motorpool_event_streams_open", Help: "Streams of events that are open."}, open)
	return metrics{
		cut: create.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_event_streams_cut_total",
			Help: "Streams that were ended because their client read too slowly.",
		}),
		followed: create.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_events_followed_total",
			Help: "Events read from the event log, while any stream was open.",
		}),
	}
}
