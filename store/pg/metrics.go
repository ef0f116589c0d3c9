package pg

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what the connections of an instance count. docs/metrics.md explains each.
type metrics struct {
	notReplicated   prometheus.Counter
	formerPrimaries prometheus.Gauge
	hanging         prometheus.GaugeFunc
	locked          *prometheus.CounterVec // calls that failed because of other programs, by table
}

func newMetrics(hanging *hanging) *metrics {
	return &metrics{
		notReplicated: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "motorpool_postgres_commits_not_replicated_total",
			Help: "Commits whose wait for the synchronous standby was cancelled; they count as not written.",
		}),
		formerPrimaries: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "motorpool_postgres_former_primaries",
			Help: "Servers of --database-url that accept writes and are not the installation's primary any more.",
		}),
		hanging: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "motorpool_postgres_hanging_statements",
			Help: "Statements that were given up because Postgres did not reply in time, and that it still executes.",
		}, func() float64 { return float64(hanging.count()) }),
		locked: newLocked(),
	}
}

// lockedTables are the values of a label; otherTable is for all others.
var lockedTables = []string{"vehicles", "commands", "units", otherTable}

const otherTable = "other"

func newLocked() *prometheus.CounterVec {
	locked := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "motorpool_locked_total",
		Help: "Calls that failed because another program has locked a row or a table. vehicles: commands; commands: results; units: " +
			"reported state and presence; other: a whole table.",
	}, []string{"table"})
	for _, table := range lockedTables {
		locked.WithLabelValues(table)
	}
	return locked
}

// countLocked counts a call that failed because of another program's lock. Transactions of the
// service hold theirs briefly: where they meet on a busy machine, there is nothing to end.
func (p *DB) countLocked(table string, by holder) {
	if by.Own {
		return
	}
	if !slices.Contains(lockedTables, table) {
		table = otherTable
	}
	p.config.shared.metrics.locked.WithLabelValues(table).Inc()
}

// Register registers the metrics of the connections; those by pool are go_sql_….
func (p *DB) Register(registerer prometheus.Registerer) {
	m := p.config.shared.metrics
	registerer.MustRegister(m.notReplicated, m.formerPrimaries, m.hanging, m.locked,
		collectors.NewDBStatsCollector(p.Prepared.Pool.DB, "commands"),
		collectors.NewDBStatsCollector(p.Pool.DB, "other"),
		collectors.NewDBStatsCollector(p.Lists.DB, "lists"),
		collectors.NewDBStatsCollector(p.Health.DB, "health"))
}
