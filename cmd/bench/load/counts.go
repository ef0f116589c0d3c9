package load

import (
	"context"
	"maps"
	"net/http"
	"strings"
	"time"

	"motorpool/metrics"
)

// Counts are the metrics of a process.
type Counts metrics.Values

// Metrics of the service.
const (
	ReportsReceived = "motorpool_reports_total"
	ReportsMerged   = "motorpool_reports_merged_total"
)

// lossMetrics begin the metrics of reports that were received and not merged.
var lossMetrics = []string{
	`motorpool_dropped_total{kind="report"`, `motorpool_dropped_total{kind="observation"`, "motorpool_unknown_unit_messages_total", "motorpool_protocol_mismatches_total",
}

// probe keeps its connection, because it is used many times a second.
var probe = &http.Client{Timeout: 10 * time.Second}

// ReadCounts reads the metrics of a process.
func ReadCounts(ctx context.Context, url string) (Counts, error) {
	values, err := metrics.Read(ctx, probe, url)
	return Counts(values), err
}

// Since returns what was added to earlier counts.
func (c Counts) Since(before Counts) Counts {
	added := Counts{}
	for name, n := range c {
		added[name] = n - before[name]
	}
	return added
}

// Lost returns the metrics of reports that were received and not merged.
func (c Counts) Lost() Counts {
	lost := maps.Clone(c)
	maps.DeleteFunc(lost, func(name string, n float64) bool {
		for _, loss := range lossMetrics {
			if strings.HasPrefix(name, loss) {
				return n == 0
			}
		}
		return true
	})
	return lost
}

// Ended returns how many reports were merged or lost.
func (c Counts) Ended() int64 {
	n := c[ReportsMerged]
	for _, lost := range c.Lost() {
		n += lost
	}
	return int64(n)
}
