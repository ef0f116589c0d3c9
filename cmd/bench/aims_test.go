package main

import (
	"bytes"
	"strings"
	"testing"
	"text/tabwriter"
)

func roundOf(rate, p50 float64) callRound {
	return callRound{called: called{Answered: 1000, Rate: rate, quantiles: quantiles{P50: p50}}, Used: map[string]usage{"service": {CPU: 0.3}}}
}

func TestTheFiguresThatTellAreMediansOfRoundsSideBySide(t *testing.T) {
	r := allResult{Command: commandResult{At: []commandsAt{
		{InFlight: 1, Floor: []callRound{roundOf(4000, 0.25), roundOf(4000, 0.5), roundOf(4000, 0.25)},
			Fair: []callRound{roundOf(2000, 0.5)}, Service: []callRound{roundOf(500, 2.25), roundOf(500, 3.5), roundOf(500, 4.25)}},
		{InFlight: 256, Floor: []callRound{roundOf(8000, 20), roundOf(4000, 20), roundOf(8000, 20)},
			Fair:    []callRound{roundOf(4000, 50), roundOf(2000, 50), roundOf(4000, 50)},
			Service: []callRound{roundOf(4000, 90), roundOf(3000, 90), roundOf(2000, 90)}},
	}}}
	r.sum()
	for name, want := range map[string]spread{
		"p50_added_ms":        {Median: 3, Least: 2, Most: 4},
		"throughput_256":      {Median: 0.5, Least: 0.25, Most: 0.75},
		"throughput_256_fair": {Median: 1, Least: 0.5, Most: 1.5},
		"cpu_us_per_command":  {Median: 300, Least: 300, Most: 300},
	} {
		if got := r.Spreads[name]; got != want || r.Ratios[name] == nil || *r.Ratios[name] != want.Median {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	for _, name := range []string{"wake_p99_ms", "kib_per_waiting", "ingest", "growth"} {
		if ratio, there := r.Ratios[name]; !there || ratio != nil {
			t.Errorf("%s: %v, %v; it was not measured", name, ratio, there)
		}
	}
}

func TestAnAimIsMetOrMissedOrNotMeasured(t *testing.T) {
	r := allResult{Spreads: map[string]spread{
		"throughput_256": {Median: 0.35}, "throughput_256_fair": {Median: 0.59}, "p50_added_ms": {Median: 1.5}, "growth": {Median: 1.2},
	}}
	var text bytes.Buffer
	to := tabwriter.NewWriter(&text, 0, 0, 1, ' ', 0)
	r.aims(to)
	if err := to.Flush(); err != nil {
		t.Fatal(err)
	}
	table, note, _ := strings.Cut(strings.TrimSpace(text.String()), "\n\n")
	if !strings.Contains(note, "means little") {
		t.Errorf("what a missed aim means is not said: %q", note)
	}
	for i, line := range strings.Split(table, "\n")[1:] {
		want := map[string]string{
			"throughput_256": "met", "throughput_256_fair": "missed", "p50_added_ms": "met", "growth": "missed",
		}[aims[i].name]
		if want == "" {
			want = "not measured"
		}
		if !strings.HasSuffix(strings.TrimSpace(line), want) {
			t.Errorf("%s: %q, want %s", aims[i].name, line, want)
		}
	}
}
