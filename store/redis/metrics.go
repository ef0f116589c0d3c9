package redis

import "github.com/prometheus/client_golang/prometheus"

// docs/metrics.md explains each.
var (
	connections = prometheus.NewDesc(
		"motorpool_redis_connections", "Open connections to Redis, without those of subscriptions.", []string{"state"},
		nil,
	)
	timeouts = prometheus.NewDesc(
		"motorpool_redis_pool_timeouts_total", "Times that no connection to Redis became free in time.", nil, nil,
	)
)

// Describe is of prometheus.Collector.
func (db *DB) Describe(to chan<- *prometheus.Desc) {
	to <- connections
	to <- timeouts
}

// Collect is of prometheus.Collector.
func (db *DB) Collect(to chan<- prometheus.Metric) {
	pool := db.Client.PoolStats()
	to <- prometheus.MustNewConstMetric(connections, prometheus.GaugeValue, float64(pool.IdleConns), "idle")
	to <- prometheus.MustNewConstMetric(connections, prometheus.GaugeValue, float64(pool.TotalConns-min(pool.IdleConns,
		pool.TotalConns)), "used")
	to <- prometheus.MustNewConstMetric(timeouts, prometheus.CounterValue, float64(pool.Timeouts))
}
