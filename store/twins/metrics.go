package twins

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// registerLag registers how far Postgres is behind. docs/operating.md explains it.
func registerLag(registerer prometheus.Registerer, toPostgres *outbox) {
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_reported_state_lag_seconds", Help: "Age of the oldest reported state that is not in Postgres yet, at most.",
	}, func() float64 { return toPostgres.lag(time.Now()).Seconds() })
}
