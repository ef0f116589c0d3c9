package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
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

// readLedger asks a process for its counts.
func readLedger(ctx context.Context, url string) (ledger, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	response, err := asker.Do(request)
	if err != nil {
		return nil, fmt.Errorf("read counts: %w", err)
	}
	defer response.Body.Close()
	var said struct{ Counts ledger }
	if err := json.NewDecoder(response.Body).Decode(&said); err != nil {
		return nil, fmt.Errorf("read counts: %w", err)
	}
	return said.Counts, nil
}
