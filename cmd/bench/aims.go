package main

import (
	"fmt"
	"text/tabwriter"
)

// aim is what a figure should be, on two cores.
type aim struct {
	name   string // in bench.json
	what   string
	most   bool // the figure should be no more than this, else no less
	figure float64
}

var aims = []aim{
	{"throughput_256_fair", "throughput with the most in flight, service / fair floor", false, 0.6},
	{"throughput_256", "the same / floor", false, 0.35},
	{"p50_added_ms", "p50 of one in flight, service - floor, ms", true, 1.5},
	{"wake_p99_ms", "answer heard -> caller answered, many waiting, p99, ms", true, 50},
	{"kib_per_waiting", "memory of a waiting command, KiB", true, 25},
	{"cpu_us_per_command", "the service's CPU a command, with the most in flight, µs", true, 200},
	{"ingest", "telemetry ingest / bare subscriber", false, 0.7},
	{"growth", "CPU a command, large fleet with a long history / small without", true, 1.1},
}

// sum derives the figures that tell from the rounds.
func (r *allResult) sum() {
	r.Ratios, r.Spreads = map[string]*float64{}, map[string]spread{}
	put := func(name string, values []float64) {
		r.Ratios[name] = nil
		if len(values) > 0 {
			s := spreadOf(values)
			r.Ratios[name], r.Spreads[name] = &s.Median, s
		}
	}
	var alone, crowded commandsAt
	if n := len(r.Command.At); n > 0 {
		alone, crowded = r.Command.At[0], r.Command.At[n-1]
	}
	put("throughput_256_fair", pairs(crowded.Service, crowded.Fair, rateRatio))
	put("throughput_256", pairs(crowded.Service, crowded.Floor, rateRatio))
	put("cpu_us_per_command", of(crowded.Service, serviceCost))
	put("p50_added_ms", pairs(alone.Service, alone.Floor, p50Beyond))
	put("wake_p99_ms", of(r.Waiting.Service, wakeP99))
	put("kib_per_waiting", of(r.Waiting.Service, kibEach))
	put("ingest", r.Ingest.ratios())
	put("growth", r.Growth.ratios())
}

// wakeP99 is from when the service heard the answer: that is when the command was completed.
func wakeP99(r waitingRound) float64 {
	if r.Settled == nil {
		return 0
	}
	return r.Settled.P99
}

// ratios compares rounds of the first fleet that took turns.
func (r ingestResult) ratios() []float64 {
	if len(r.Fleets) == 0 {
		return nil
	}
	return pairs(r.Fleets[0].Service, r.Fleets[0].Floor, func(service, floor ingestRound) float64 { return service.Rate / floor.Rate })
}

// ratios are those of the largest fleet with its history, round by round.
func (r growthResult) ratios() []float64 {
	for _, v := range r.Variants {
		if v.History > 0 && v.Instances == 1 {
			return pairs(v.Grown.Rounds, v.Small.Rounds, servingRatio)
		}
	}
	return nil
}

// aims prints what was aimed at, and what it is.
func (r allResult) aims(to *tabwriter.Writer) {
	fmt.Fprintln(to, "\taim\tmedian\tleast\tmost\t\t")
	missed := false
	for _, a := range aims {
		bound := ">="
		if a.most {
			bound = "<="
		}
		s, measured := r.Spreads[a.name]
		if !measured {
			fmt.Fprintf(to, "%s\t%s %g\t-\t-\t-\tnot measured\t\n", a.what, bound, a.figure)
			continue
		}
		verdict := "missed"
		if a.most && s.Median <= a.figure || !a.most && s.Median >= a.figure {
			verdict = "met"
		}
		missed = missed || verdict == "missed"
		fmt.Fprintf(to, "%s\t%s %g\t%.2f\t%.2f\t%.2f\t%s\t\n", a.what, bound, a.figure, s.Median, s.Least, s.Most, verdict)
	}
	if missed {
		fmt.Fprintf(to, "\n\"missed\" means little where something else runs on the machine (its load was %.1f on %d cores at the start): repeat the run on an idle one\n", r.Machine.Load, r.Machine.Cores)
	}
}
