package connections

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are those of a bounded listener. docs/metrics.md explains each.
type metrics struct{ evicted, refused prometheus.Counter }

func newMetrics(registerer prometheus.Registerer, open, unauthenticated func() float64) metrics {
	create := promauto.With(registerer)
	create.NewGaugeFunc(prometheus.GaugeOpts{Name: "motorpool_connections_open", Help: "HTTP connections that are open."}, open)
	create.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_connections_unauthenticated",
		Help: "Open HTTP connections that have carried no valid token within its actor's share.",
	}, unauthenticated)
	return metrics{
		evicted: create.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_connections_evicted_total",
			Help: "Unauthenticated HTTP connections that were closed at the limit to make room for others.",
		}),
		refused: create.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_connections_refused_total",
			Help: "HTTP connections that were closed at the limit because all others were authenticated.",
		}),
	}
}
