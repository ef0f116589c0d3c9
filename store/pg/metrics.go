package pg

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what the connections of an instance count. docs/operating.md explains each.
type metrics struct {
	notReplicated   prometheus.Counter
	formerPrimaries prometheus.Gauge
	hanging         prometheus.GaugeFunc
}

func newMetrics(hanging *hanging) *metrics {
	return &metrics{
		notReplicated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_postgres_commits_not_replicated_total", Help: "Commits whose wait for the synchronous standby was cancelled; they count as not written.",
		}),
		formerPrimaries: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "motorpool_postgres_former_primaries", Help: "Servers of --database-url that accept writes and are not the installation's primary any more.",
		}),
		hanging: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "motorpool_postgres_hanging_statements", Help: "Statements that were given up because Postgres did not reply in time, and that it still executes.",
		}, func() float64 { return float64(hanging.count()) }),
	}
}

// Register registers the metrics of the connections; those by pool are go_sql_….
func (p *DB) Register(registerer prometheus.Registerer) {
	m := p.config.shared.metrics
	registerer.MustRegister(m.notReplicated, m.formerPrimaries, m.hanging,
		collectors.NewDBStatsCollector(p.Prepared.Pool.DB, "commands"),
		collectors.NewDBStatsCollector(p.Pool.DB, "other"),
		collectors.NewDBStatsCollector(p.Lists.DB, "lists"))
}
