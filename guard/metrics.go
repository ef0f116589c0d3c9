package guard

import "github.com/prometheus/client_golang/prometheus"

// newPanics returns the counter of panics. docs/metrics.md explains it.
func newPanics() prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{
		Name: "motorpool_panics_total", Help: "Panics while a message, a command or a job was handled, which was dropped.",
	})
}
