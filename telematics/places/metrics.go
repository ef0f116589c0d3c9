package places

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the counters of a finder: requests to the geocoder, by result.
type metrics struct{ found, none, failed prometheus.Counter }

func newMetrics(registerer prometheus.Registerer) *metrics {
	requests := promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
		Name: "motorpool_geocoder_requests_total", Help: "Requests to the geocoder, by their result.",
	}, []string{"result"})
	return &metrics{found: requests.WithLabelValues("found"), none: requests.WithLabelValues("none"), failed: requests.WithLabelValues("failed")}
}
