package httpapi

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// connectionMetrics are what a bounded listener counts. docs/operating.md explains each.
type connectionMetrics struct{ evicted, refused prometheus.Counter }

func newConnectionMetrics(registerer prometheus.Registerer, open, unauthenticated func() float64) connectionMetrics {
	create := promauto.With(registerer)
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "motorpool_connections_open", Help: "HTTP connections that are open."}, open)
	create.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_connections_unauthenticated", Help: "Open HTTP connections that have carried no valid token within its actor's share.",
	}, unauthenticated)
	return connectionMetrics{
		evicted: create.NewCounter(prometheus.CounterOpts{Name: "motorpool_connections_evicted_total", Help: "Unauthenticated HTTP connections that were closed at the limit to make room for others."}),
		refused: create.NewCounter(prometheus.CounterOpts{Name: "motorpool_connections_refused_total", Help: "HTTP connections that were closed at the limit because all others were authenticated."}),
	}
}
