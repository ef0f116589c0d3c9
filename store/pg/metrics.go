package pg

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Register registers the metrics of the connections, by pool: go_sql_….
func (p *DB) Register(registerer prometheus.Registerer) {
	registerer.MustRegister(
		collectors.NewDBStatsCollector(p.Prepared.Pool.DB, "commands"),
		collectors.NewDBStatsCollector(p.Pool.DB, "other"),
		collectors.NewDBStatsCollector(p.Lists.DB, "lists"))
}
