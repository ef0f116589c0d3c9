package load

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"motorpool/metrics"
)

// Counts are the metrics of a process.
type Counts metrics.Values

// Metrics of the service, and of the floor.
const (
	ReportsReceived = "motorpool_reports_total"
	ReportsMerged   = "motorpool_reports_merged_total"
	LastReport      = "bench_last_report_microseconds" // of the floor: when it was received
)

// lossMetrics begin the metrics of reports that were received and not merged.
var lossMetrics = []string{
	`motorpool_dropped_total{kind="report"`, `motorpool_dropped_total{kind="observation"`, "motorpool_unknown_unit_messages_total", "motorpool_protocol_mismatches_total",
}

// counted is a query for these metrics: the process then returns no others.
var counted = func() string {
	query := url.Values{}
	for _, name := range append([]string{ReportsReceived, ReportsMerged}, lossMetrics...) {
		name, _, _ = strings.Cut(name, "{")
		query.Add("name[]", name)
	}
	return "?" + query.Encode()
}()

// ReadCounts reads the metrics of processes at the URLs of their endpoints, and returns their sums.
// That takes a millisecond of each process.
func ReadCounts(ctx context.Context, urls ...string) (Counts, error) {
	sum := Counts{}
	for _, url := range urls {
		values, err := metrics.Read(ctx, http.DefaultClient, url+counted)
		if err != nil {
			return nil, err
		}
		for name, value := range values {
			sum[name] += value
		}
	}
	return sum, nil
}

// Since returns the differences to earlier counts.
func (c Counts) Since(before Counts) Counts {
	added := Counts{}
	for name, n := range c {
		added[name] = n - before[name]
	}
	return added
}

// Lost returns, for a number of published reports, how many were received and not merged, by
// metric, and how many were not received.
func (c Counts) Lost(published int64) Counts {
	lost := c.dropped()
	if missing := float64(published) - c[ReportsReceived]; missing != 0 {
		lost["not_received"] = missing
	}
	return lost
}

func (c Counts) dropped() Counts {
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
	for _, lost := range c.dropped() {
		n += lost
	}
	return int64(n)
}
