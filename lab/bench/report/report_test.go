package report

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
)

// Other programs read these names.
var names = []string{
	"throughput_256_fair", "throughput_256", "p50_added_ms", "cpu_us_per_command", "kib_per_waiting",
	"memory_ratio_per_waiting", "wake_p99_ms", "ingest", "report_cpu_us_100k", "report_wal_bytes_100k",
	"report_lag_s_100k", "kib_per_vehicle", "growth", "durable_1", "durable_4", "durable_16", "durable_64",
	"durable_256", "p50_over_durable_ms", "cpu_durable_1", "cpu_durable_16", "cpu_durable_256", "slow_cars_cost",
}

func TestSum_EveryRatioHasItsName(t *testing.T) {
	var r Results
	r.Sum()
	text, err := json.Marshal(map[string]any{"ratios": r.Ratios})
	if whole, failure := json.Marshal(r); err != nil || failure != nil || !bytes.Contains(whole, text[1:len(text)-1]) {
		t.Errorf("the file %s lacks %s", whole, text)
	}
	for _, name := range names {
		if ratio, there := r.Ratios[name]; !there || ratio != nil {
			t.Errorf("%s was not measured, but the file has %v, %t", name, ratio, there)
		}
	}
}

func TestSum_ComparesTheSidesOfEachRound(t *testing.T) {
	r := Results{Figures: map[string][]float64{}}
	var lines, text bytes.Buffer
	add := func(benchmark string, rounds ...Round) {
		for _, round := range rounds {
			r.Add(&lines, benchmark, round)
		}
	}
	add(
		"Command/in-flight=1/side=service", Round{"p50-ms": 2.25, "µs-service": 900},
		Round{"p50-ms": 3.5, "µs-service": 800}, Round{"p50-ms": 4.25, "µs-service": 700},
	)
	add("Command/in-flight=1/side=echo", Round{"p50-ms": 0.25}, Round{"p50-ms": 0.5}, Round{"p50-ms": 0.25})
	add(
		"Command/in-flight=1/side=durable", Round{"p50-ms": 1.25, "µs-handler": 400},
		Round{"p50-ms": 3, "µs-handler": 400}, Round{"p50-ms": 4, "µs-handler": 400},
	)
	add(
		"Command/in-flight=256/side=service", Round{"ops/s": 4000, "µs-service": 200},
		Round{"ops/s": 3000, "µs-service": 300}, Round{"ops/s": 2000, "µs-service": 400},
	)
	add("Command/in-flight=256/side=fair", Round{"ops/s": 4000}, Round{"ops/s": 2000}, Round{"ops/s": 4000})
	add(
		"Command/in-flight=256/side=durable", Round{"ops/s": 4000, "µs-handler": 100},
		Round{"ops/s": 4000, "µs-handler": 100}, Round{"ops/s": 4000, "µs-handler": 100},
	)
	add("Command/cars=slow/side=service", Round{"µs-servers": 900})
	add("Command/in-flight=16/side=service", Round{"µs-servers": 600}, Round{"µs-servers": 500})
	r.Sum()
	for name, want := range map[string]Spread{
		"p50_added_ms":        {3, 2, 4, 0.75},
		"p50_over_durable_ms": {0.5, 0.25, 1, 0.75},
		"cpu_durable_1":       {2, 1.75, 2.25, 0.75},
		"throughput_256_fair": {1, 0.5, 1.5, 0.75},
		"durable_256":         {0.75, 0.5, 1, 0.75},
		"cpu_durable_256":     {3, 2, 4, 0.75},
		"cpu_us_per_command":  {300, 200, 400, 0.75},
		"slow_cars_cost":      {1.5, 1.5, 1.5, 0},
	} {
		if got := r.Spreads[name]; got != want || r.Ratios[name] == nil || *r.Ratios[name] != want.Median {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	if r.Ratios["durable_4"] != nil {
		t.Error("4 in flight were not measured, but have a ratio")
	}
	if line, _ := lines.ReadString('\n'); line != "BenchmarkCommand/in-flight=1/side=service 1 2.25 p50-ms 900 µs-service\n" {
		t.Errorf("benchstat does not read %q", line)
	}
	r.Write(&text)
	for _, part := range []string{"0.50 to 1.50 (75 %)", "≥ 0.55"} {
		if !strings.Contains(text.String(), part) {
			t.Errorf("the ratios lack %q:\n%s", part, &text)
		}
	}
}

func TestSpreadOf_IntervalOfTheMedian(t *testing.T) {
	// With nine values the interval of 95 % is from the second to the eighth: 1 - 2·(1+9)/2⁹.
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{7}, Spread{7, 7, 7, 0}},
		{[]float64{3, 1, 2}, Spread{2, 1, 3, 0.75}},
		{[]float64{5, 1, 4, 2, 3}, Spread{3, 1, 5, 0.9375}},
		{[]float64{9, 8, 7, 6, 5, 4, 3, 2, 1}, Spread{5, 2, 8, 1 - 20.0/512}},
	} {
		first := c.values[0]
		got := SpreadOf(c.values)
		if got.Confidence = math.Round(
			got.Confidence*1e9,
		) / 1e9; got != (Spread{c.want.Median, c.want.Low, c.want.High, math.Round(c.want.Confidence*1e9) / 1e9}) {
			t.Errorf("the spread of %v is %+v, want %+v", c.values, got, c.want)
		}
		if c.values[0] != first {
			t.Error("the values were sorted, so the rounds are no longer pairs")
		}
	}
}
