package main

import (
	"context"
	"net/http"
	"time"

	"motorpool/metrics"
)

// ledger is what a process says became of the reports that it took, by the names of its counts.
type ledger map[string]int64

// A report that was taken comes to one of these ends.
var ends = []string{reportsMerged, "reports_dropped", "reports_limited", "reports_malformed", "reports_too_large", "reports_retained", "observations_lost", "units_unknown", "units_foreign"}

// Names of counts.
const (
	reportsTaken  = "reports_taken"
	reportsMerged = "reports_merged"
)

// losses are the counts that stay zero where nothing is lost.
var losses = []string{"reports_dropped", "reports_limited", "reports_malformed", "reports_too_large", "reports_retained", "report_fields_dropped", "observations_lost", "units_unknown"}

// ended returns how many reports came to an end. Who says nothing of merging has no more to do than to take them.
func (l ledger) ended() int64 {
	if _, merges := l[reportsMerged]; !merges {
		return l[reportsTaken]
	}
	var n int64
	for _, name := range ends {
		n += l[name]
	}
	return n
}

// since returns what was added to an earlier one.
func (l ledger) since(before ledger) ledger {
	added := ledger{}
	for name, n := range l {
		added[name] = n - before[name]
	}
	return added
}

// lost returns what was lost, by name.
func (l ledger) lost() ledger {
	lost := ledger{}
	for _, name := range losses {
		if l[name] != 0 {
			lost[name] = l[name]
		}
	}
	return lost
}

// asker asks again and again, so it keeps its connection.
var asker = &http.Client{Timeout: 10 * time.Second}

// samplesOf are the metrics whose sum is a count.
var samplesOf = map[string][]string{
	reportsTaken:            {"motorpool_reports_total"},
	reportsMerged:           {"motorpool_reports_merged_total"},
	"reports_dropped":       {`motorpool_dropped_total{kind="report", reason="queue_full"}`},
	"reports_limited":       {`motorpool_dropped_total{kind="report", reason="over_allowance"}`},
	"reports_malformed":     {`motorpool_dropped_total{kind="report", reason="malformed"}`},
	"reports_too_large":     {`motorpool_dropped_total{kind="report", reason="too_large"}`},
	"reports_retained":      {`motorpool_dropped_total{kind="report", reason="retained"}`},
	"report_fields_dropped": {`motorpool_report_fields_dropped_total{reason="wrong_type"}`, `motorpool_report_fields_dropped_total{reason="out_of_range"}`, `motorpool_report_fields_dropped_total{reason="unknown_word"}`, `motorpool_report_fields_dropped_total{reason="wrong_time"}`, `motorpool_report_fields_dropped_total{reason="other"}`},
	"observations_lost":     {`motorpool_dropped_total{kind="observation", reason="not_stored"}`, `motorpool_dropped_total{kind="observation", reason="queue_full"}`},
	"units_unknown":         {"motorpool_unknown_unit_messages_total"},
	"units_foreign":         {"motorpool_protocol_mismatches_total"},
	"publications":          {"motorpool_publications_total"},
	"answers_dropped":       {`motorpool_dropped_total{kind="answer", reason="queue_full"}`},
	"answers_limited":       {`motorpool_dropped_total{kind="answer", reason="over_allowance"}`},
	"answers_lost":          {`motorpool_dropped_total{kind="answer", reason="not_stored"}`},
}

// readLedger reads the counts of a process.
func readLedger(ctx context.Context, url string) (ledger, error) {
	values, err := metrics.Read(ctx, asker, url)
	if err != nil {
		return nil, err
	}
	l := ledger{}
	for name, samples := range samplesOf {
		for _, sample := range samples {
			if n, ok := values[sample]; ok {
				l[name] += int64(n)
			}
		}
	}
	return l, nil
}
