package app

import (
	"cmp"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/pprof"
	"net/url"
	"slices"
	"time"

	"motorpool/broker/link"
	"motorpool/httpapi/health"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// newRegistry returns a registry with the metrics of the Go runtime, the process, the log, the
// signing key, the certificates, and of which instance this is.
func (s *service) newRegistry() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), s.signing)
	for _, certificate := range s.secured.inUse {
		certificate.register(registry)
	}
	if s.config.LogDropped != nil {
		registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "motorpool_log_lines_dropped_total",
			Help: "Lines of the log that were dropped: they were not read, or could not be written.",
		}, s.config.LogDropped))
	}
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name:        "motorpool_instance_info",
		Help:        "Always 1; the labels name the instance, as the log and the database do, and the version of the program.",
		ConstLabels: prometheus.Labels{"id": s.instance, "version": cmp.Or(s.config.Version, "dev")},
	}, func() float64 { return 1 }))
	return registry
}

// brokerGauges are what each MQTT broker says of itself.
type brokerGauges map[string]*prometheus.GaugeVec

func newBrokerGauges(registry *prometheus.Registry, shards [][]string) brokerGauges {
	gauge := func(name, help string) *prometheus.GaugeVec {
		return promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"node"})
	}
	gauges := brokerGauges{
		link.System.Retained: gauge("motorpool_mqtt_retained_messages", "Retained messages that the MQTT broker holds, as it says."),
		link.System.Heap:     gauge("motorpool_mqtt_heap_bytes", "Memory that the MQTT broker has allocated, as it says."),
	}
	for _, node := range slices.Concat(shards...) {
		if u, err := url.Parse(node); err == nil {
			gauges.set(u.Host, link.System.Retained, 0)
			gauges.set(u.Host, link.System.Heap, 0)
		}
	}
	return gauges
}

func (g brokerGauges) set(node, topic string, value float64) {
	if gauge := g[topic]; gauge != nil {
		gauge.WithLabelValues(node).Set(value)
	}
}

// databaseGauges are values that databaseWatch reads from Postgres: the same at every instance.
type databaseGauges struct {
	asynchronous, stuckCharges, chargesForOperator, unrecorded, agencyKeysExpiry prometheus.Gauge

	clockLeaps        prometheus.Counter
	contactsCorrected prometheus.Counter
	partitionsAhead   *prometheus.GaugeVec
}

func newDatabaseGauges(registry *prometheus.Registry) databaseGauges {
	gauge := func(name, help string) prometheus.Gauge {
		return promauto.With(registry).NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	g := databaseGauges{
		contactsCorrected: promauto.With(registry).NewCounter(prometheus.CounterOpts{
			Name: "motorpool_contacts_corrected_total",
			Help: "Contacts of units that this instance has corrected, since they were dated farther ahead than they can be.",
		}),
		clockLeaps: promauto.With(registry).NewCounter(prometheus.CounterOpts{
			Name: "motorpool_postgres_clock_leaps_total",
			Help: "Leaps of Postgres's clock that this instance was the first to see: by more than an hour ahead, " +
				"or a minute back between two looks, 30 s apart.",
		}),
		partitionsAhead: promauto.With(registry).NewGaugeVec(prometheus.GaugeOpts{
			Name: "motorpool_partitions_ahead_seconds", Help: "For how long the partitions of a table by time last from now.",
		}, []string{"table"}),
		asynchronous: gauge("motorpool_postgres_asynchronous_standbys", "Standbys of Postgres that may lack what was committed."),
		stuckCharges: gauge(
			"motorpool_charges_stuck",
			"Charges whose result is still unknown after several looks at the payment processor.",
		),
		chargesForOperator: gauge(
			"motorpool_charges_for_operator",
			"Charges of the last 30 days that were not made for a reason which only an operator can change, "+
				"and that neither a later fee that is paid nor a later capture replaces.",
		),
		unrecorded: gauge(
			"motorpool_payments_unrecorded",
			"Payments of this installation at the payment processor that no charge has: a commit was lost.",
		),
		agencyKeysExpiry: gauge(
			"motorpool_agency_keys_expiry_timestamp_seconds",
			"Time at which the next agency is left without a valid key; +Inf: none will be.",
		),
	}
	g.setExpiry(time.Time{})
	return g
}

// setExpiry sets agencyKeysExpiry; the zero time means never.
func (g databaseGauges) setExpiry(t time.Time) {
	if t.IsZero() {
		g.agencyKeysExpiry.Set(math.Inf(1))
		return
	}
	g.agencyKeysExpiry.Set(float64(t.Unix()))
}

// internalHandler serves the internal listener: readiness with the reasons, metrics, the units'
// keys.
func (s *service) internalHandler(ready *health.Readiness) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", ready.Internal())
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "Motorpool, internal address. There are:\n/readyz\n/healthz\n/metrics\n/units.jwks\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelWarn), ErrorHandling: promhttp.ContinueOnError,
	}))
	mux.HandleFunc("GET /units.jwks", s.signing.serveUnits)
	if s.config.Profiles { // without the command line: flags may be secrets
		mux.HandleFunc("GET /debug/pprof/", pprof.Index) // and the named ones of runtime/pprof
		mux.HandleFunc("GET /debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("GET /debug/pprof/trace", pprof.Trace)
	}
	return mux
}
