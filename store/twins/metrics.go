package twins

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// registerLag registers the gauge of how late reported state is in Postgres. docs/metrics.md
// explains it.
func registerLag(registerer prometheus.Registerer, lag func(now time.Time) time.Duration) {
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_reported_state_lag_seconds",
		Help: "Time for which the oldest reported state should have been in Postgres, and is not, at most.",
	}, func() float64 { return lag(time.Now()).Seconds() })
}
