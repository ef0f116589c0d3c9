package app

import (
	"cmp"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// newRegistry returns a registry that has the metrics of the Go runtime, of the process and of its signing key.
func newRegistry(signing *signingKeys) *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), signing)
	return registry
}

// registerInstance registers which instance this is.
func (c Config) registerInstance(registry *prometheus.Registry, id string) {
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "motorpool_instance_info", Help: "Always 1; the labels name the instance, as the log and the database do, and the version of the program.",
		ConstLabels: prometheus.Labels{"id": id, "version": cmp.Or(c.Version, "dev")},
	}, func() float64 { return 1 }))
}

func newStandbysGauge(registry *prometheus.Registry) prometheus.Gauge {
	return promauto.With(registry).NewGauge(prometheus.GaugeOpts{
		Name: "motorpool_postgres_asynchronous_standbys", Help: "Standbys of Postgres that may lack what was committed.",
	})
}

func serveMetrics(registry *prometheus.Registry, log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	})
}
