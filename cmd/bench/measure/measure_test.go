package measure

import (
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/cmd/bench/load"
)

func TestMedian(t *testing.T) {
	for want, values := range map[float64][]float64{0: nil, 2: {3, 1, 2}, 2.5: {4, 1, 3, 2}, 7: {7}} {
		if got := Median(values); got != want {
			t.Errorf("the median of %v is %v, want %v", values, got, want)
		}
	}
}

func TestSpreadOf(t *testing.T) {
	if got := SpreadOf([]float64{3, 1, 2}); got != (Spread{Median: 2, Least: 1, Most: 3}) || got.String() != "2.00 (1.00 to 3.00)" {
		t.Errorf("spread %v", got)
	}
}

func roundOf(rate, p50 float64) Round {
	return Round{Called: load.Called{Answered: 1000, Rate: rate, Quantiles: load.Quantiles{P50: p50}}, Used: map[string]Usage{"service": {CPU: 0.3}}}
}

func TestSum_MediansOfAlternatingRounds(t *testing.T) {
	r := Results{
		Command: &CommandResult{At: []CommandAt{
			{InFlight: 1, Floor: []Round{roundOf(4000, 0.25), roundOf(4000, 0.5), roundOf(4000, 0.25)},
				Fair: []Round{roundOf(2000, 0.5)}, Service: []Round{roundOf(500, 2.25), roundOf(500, 3.5), roundOf(500, 4.25)}},
			{InFlight: 256, Floor: []Round{roundOf(8000, 20), roundOf(4000, 20), roundOf(8000, 20)},
				Fair:    []Round{roundOf(4000, 50), roundOf(2000, 50), roundOf(4000, 50)},
				Service: []Round{roundOf(4000, 90), roundOf(3000, 90), roundOf(2000, 90)}},
		}},
		Waiting: &WaitingResult{Floor: []WaitingRound{{Each: 40}}, Service: []WaitingRound{{Each: 50, Settled: load.Quantiles{P99: 12}}}},
	}
	r.Sum()
	for name, want := range map[string]Spread{
		"p50_added_ms":             {Median: 3, Least: 2, Most: 4},
		"throughput_256":           {Median: 0.5, Least: 0.25, Most: 0.75},
		"throughput_256_fair":      {Median: 1, Least: 0.5, Most: 1.5},
		"cpu_us_per_command":       {Median: 300, Least: 300, Most: 300},
		"memory_ratio_per_waiting": {Median: 1.25, Least: 1.25, Most: 1.25},
		"kib_per_waiting":          {Median: 50, Least: 50, Most: 50},
		"wake_p99_ms":              {Median: 12, Least: 12, Most: 12},
	} {
		if got := r.Spreads[name]; got != want || r.Ratios[name] == nil || *r.Ratios[name] != want.Median {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, name := range []string{"ingest", "growth"} {
		if ratio, there := r.Ratios[name]; !there || ratio != nil {
			t.Errorf("%s was not measured, but its ratio is %v, %v", name, ratio, there)
		}
	}
}

func TestSum_GrowthOfTheVariantWithHistory(t *testing.T) {
	cheap, costly := Round{Called: load.Called{Answered: 1000}, Used: map[string]Usage{"service": {CPU: 1}}}, Round{Called: load.Called{Answered: 1000}, Used: map[string]Usage{"service": {CPU: 0.5}, "postgres": {CPU: 1.5}}}
	r := Results{Growth: &GrowthResult{Variants: []Variant{
		{Instances: 1, Small: []Round{cheap}, Grown: []Round{cheap}},
		{History: 5, Instances: 1, Small: []Round{cheap}, Grown: []Round{costly}},
		{History: 5, Instances: 2, Small: []Round{cheap}, Grown: []Round{cheap}},
	}}}
	r.Sum()
	if got := *r.Ratios["growth"]; got != 2 {
		t.Errorf("growth %v, want 2", got)
	}
}

func TestRound_RefusalsAndMissingEntriesAreErrors(t *testing.T) {
	for want, r := range map[string]Round{
		"":                    {Called: load.Called{Answered: 5}, Entries: 5},
		"4 audit log entries": {Called: load.Called{Answered: 5}, Entries: 4},
		"1 refused (no)":      {Called: load.Called{Answered: 5, Refused: 1, Why: "no"}, Entries: 5},
	} {
		if err := r.check(); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestBetween(t *testing.T) {
	q, err := between([]int64{1000, 0, 1000}, []int64{3000, 0, 5000})
	if err != nil || q.P50 != 2 || q.Max < 4 || q.Max > 4.01 {
		t.Errorf("quantiles %+v, %v", q, err)
	}
	if _, err := between([]int64{1000, 5000}, []int64{3000, 4000}); err == nil || !strings.Contains(err.Error(), "vehicle 2") {
		t.Errorf("an answer before its command: %v", err)
	}
}

func TestWaiting_NoUnitAnswersBeforeTheLastCommand(t *testing.T) {
	for _, c := range []struct{ network, ramp, hold, most time.Duration }{
		{5 * time.Second, 16 * time.Second, 16 * time.Second, 16 * time.Second},
		{time.Second, 1500 * time.Millisecond, 3100 * time.Millisecond, 22400 * time.Millisecond},
		{10 * time.Second, time.Second, 0, 8 * time.Second},
	} {
		w := Waiting{Network: c.network, Ramp: c.ramp}
		if w.hold() != c.hold || w.longestRamp() != c.most {
			t.Errorf("%v: hold %v, ramp at most %v", c.network, w.hold(), w.longestRamp())
		}
	}
	for _, w := range []Waiting{{Network: 0}, {Network: 16 * time.Second}, {Network: 5 * time.Second, Ramp: 17 * time.Second}} {
		if err := w.Measure(t.Context(), Setup{}, &Results{}); err == nil || !strings.Contains(err.Error(), "--ramp") {
			t.Errorf("%+v: error %v, want one about --ramp", w, err)
		}
	}
}

func TestStrideFor_EveryVehicleReports(t *testing.T) {
	for _, vehicles := range []int{1, 2, 500, 2000, 30_000, 99_991} {
		seen := make([]bool, vehicles)
		for n := range vehicles {
			seen[n*strideFor(vehicles)%vehicles] = true
		}
		if slices.Contains(seen, false) {
			t.Errorf("some of %d vehicles never report", vehicles)
		}
	}
}
