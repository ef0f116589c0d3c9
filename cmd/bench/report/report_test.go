package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"motorpool/cmd/bench/load"
	"motorpool/cmd/bench/measure"
)

func results() *measure.Results {
	round := func(rate, p50 float64) []measure.Round {
		return []measure.Round{{
			Called: load.Called{Answered: 1000, Rate: rate, Quantiles: load.Quantiles{P50: p50, P99: 2 * p50}}, Used: map[string]measure.Usage{"service": {CPU: 0.2}},
		}}
	}
	r := &measure.Results{Command: &measure.CommandResult{At: []measure.CommandAt{
		{InFlight: 1, Floor: round(4000, 0.25), Fair: round(2000, 0.5), Service: round(500, 2)},
		{InFlight: 256, Floor: round(8000, 20), Fair: round(4000, 50), Service: round(2000, 90)},
	}}}
	r.Sum()
	return r
}

func TestTables_AimsAreMetOrMissed(t *testing.T) {
	var text bytes.Buffer
	if err := Tables(&text, results()); err != nil {
		t.Fatal(err)
	}
	for row, want := range map[string]string{"throughput with the most": "missed", "p50 of one in flight": "met", "CPU of the service per command": "met"} {
		found := false
		for line := range strings.Lines(text.String()) {
			found = found || strings.Contains(line, row) && strings.HasSuffix(strings.TrimSpace(line), want)
		}
		if !found {
			t.Errorf("%s is not %s in\n%s", row, want, &text)
		}
	}
	if !strings.Contains(text.String(), "says little if something else ran") {
		t.Error("the tables do not explain a missed aim")
	}
}

func TestJSON_HasEveryRatio(t *testing.T) {
	text, err := JSON(results())
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Ratios map[string]*float64 }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"throughput_256_fair", "throughput_256", "p50_added_ms", "wake_p99_ms", "kib_per_waiting", "memory_ratio_per_waiting", "cpu_us_per_command", "ingest", "growth",
		"report_cpu_us_100k", "report_wal_bytes_100k", "report_lag_s_100k", "kib_per_vehicle",
	} {
		if _, ok := file.Ratios[name]; !ok {
			t.Errorf("the ratio %s is missing", name)
		}
	}
}
