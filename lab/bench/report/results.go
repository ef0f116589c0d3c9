// Package report has what was measured: each round in Go's benchmark format, ratios and their
// spreads, and bench.json.
package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/aclements/go-moremath/stats"
)

// Results are what the experiments measured.
type Results struct {
	Machine Machine             `json:"machine"`
	Rounds  int                 `json:"rounds"`
	Ratios  map[string]*float64 `json:"ratios"` // medians; null: not measured
	Spreads map[string]Spread   `json:"spreads"`
	// Figures have one value of each round, by the name of the benchmark and the unit.
	Figures map[string][]float64 `json:"figures"`
}

// Machine is where and when a run was made: only runs on the same machine are comparable.
type Machine struct {
	At    time.Time `json:"at"`
	Cores int       `json:"cores"`
	Go    string    `json:"go"`
	Load  float64   `json:"load"` // of the minute before
}

// Round has figures by unit.
type Round map[string]float64

// Add adds a round of a side, the service or a floor, in a case of an experiment, and writes it in
// Go's benchmark format, as benchstat reads it.
func (r *Results) Add(to io.Writer, benchmark string, round Round) {
	line := fmt.Sprintf("Benchmark%s 1", benchmark)
	for _, unit := range slices.Sorted(maps.Keys(round)) {
		name := benchmark + " " + unit
		r.Figures[name] = append(r.Figures[name], round[unit])
		line += fmt.Sprintf(" %.5g %s", round[unit], unit)
	}
	fmt.Fprintln(to, line)
}

// Spread is the median of a figure that was measured several times, with its confidence interval.
// It is calculated as by benchstat, with no assumption about the distribution.
type Spread struct {
	Median     float64 `json:"median"`
	Low        float64 `json:"low"`
	High       float64 `json:"high"`
	Confidence float64 `json:"confidence"`
}

// SpreadOf returns the spread of at least one value. Fewer than six have no interval of 95 %:
// theirs is from the least to the greatest, which has 75 % for three values.
func SpreadOf(values []float64) Spread {
	n := len(values)
	if n == 1 {
		return Spread{Median: values[0], Low: values[0], High: values[0]}
	}
	interval := stats.QuantileCI(n, 0.5, min(0.95, 1-2/float64(int64(1)<<min(n, 50))))
	median, low, high := interval.SampleCI(stats.Sample{Xs: slices.Sorted(slices.Values(values)), Sorted: true})
	return Spread{median, low, high, interval.Confidence}
}

// Sum derives the ratios from the rounds.
func (r *Results) Sum() {
	r.Ratios, r.Spreads = map[string]*float64{}, map[string]Spread{}
	for _, of := range ratios {
		r.Ratios[of.name] = nil
		if values := of.values(r.Figures); len(values) > 0 {
			s := SpreadOf(values)
			r.Ratios[of.name], r.Spreads[of.name] = &s.Median, s
		}
	}
}

// Write writes the ratios that were measured, with their aims.
func (r *Results) Write(to io.Writer) {
	m := r.Machine
	fmt.Fprintf(to, "\n%v, %d cores, %s, load %.1f at the start; rounds: %d\n", m.At, m.Cores, m.Go, m.Load, r.Rounds)
	fmt.Fprintf(to, "%-26s %10s  %-28s %s\n", "ratio", "median", "interval", "aim")
	for _, of := range ratios {
		if s, measured := r.Spreads[of.name]; measured {
			interval := ""
			if s.Confidence > 0 {
				interval = fmt.Sprintf("%.2f to %.2f (%.0f %%)", s.Low, s.High, 100*s.Confidence)
			}
			fmt.Fprintf(to, "%-26s %10.2f  %-28s %s\n", of.name, s.Median, interval, of.aim)
		}
	}
}
