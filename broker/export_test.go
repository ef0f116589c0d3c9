package broker

import "github.com/prometheus/client_golang/prometheus"

// Metrics returns where a broker registers its metrics.
func (b *Broker) Metrics() prometheus.Registerer { return b.config.Metrics }
