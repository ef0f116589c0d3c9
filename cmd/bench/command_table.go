package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

func (r commandResult) tables(to *tabwriter.Writer) {
	r.Machine.line(to)
	fmt.Fprintf(to, "%d vehicles over %d connections, messages of %d bytes; Postgres with %s\n\n", r.Vehicles, r.Connections, r.Bytes, r.Postgres)
	fmt.Fprintln(to, "in flight\t\t/s\tp50 ms\tp90 ms\tp99 ms\tmax ms\tµs CPU a command\t")
	for _, at := range r.At {
		for i := range at.Service {
			for _, side := range []struct {
				name   string
				rounds []callRound
			}{{"floor", at.Floor}, {"fair floor", at.Fair}, {"service", at.Service}} {
				if i < len(side.rounds) {
					round := side.rounds[i]
					fmt.Fprintf(to, "%d\t%s\t%.0f\t%s\t%s\t\n", at.InFlight, side.name, round.Rate, round.quantiles, round.costs())
				}
			}
		}
	}
	fmt.Fprintln(to)
	for _, at := range r.At {
		fmt.Fprintf(to, "%d in flight: service / floor %s, service / fair floor %s, p50 %s ms beyond the floor, %s µs of the service's CPU\n", at.InFlight,
			spreadOf(pairs(at.Service, at.Floor, rateRatio)), spreadOf(pairs(at.Service, at.Fair, rateRatio)),
			spreadOf(pairs(at.Service, at.Floor, p50Beyond)), spreadOf(of(at.Service, serviceCost)))
	}
	stepsTable(to, r.Steps)
}

// stepsTable prints where the time of one command at a time goes.
func stepsTable(to io.Writer, steps []step) {
	fmt.Fprintln(to, "\nstep of a command alone\ttimes\tmean µs\tp50 µs\tp99 µs\t")
	for _, s := range steps {
		fmt.Fprintf(to, "%s\t%d\t%.0f\t%.0f\t%.0f\t\n", s.Name, s.Count, s.Mean, s.P50, s.P99)
	}
}

func rateRatio(service, floor callRound) float64 { return service.Rate / floor.Rate }
func p50Beyond(service, floor callRound) float64 { return service.P50 - floor.P50 }
func serviceCost(r callRound) float64            { return r.cost("service") }

// costs lists what each process took for one command, and all of them.
func (r callRound) costs() string {
	var each []string
	all := 0.0
	for _, name := range slices.Sorted(maps.Keys(r.Used)) {
		each = append(each, fmt.Sprintf("%s %.0f", name, r.cost(name)))
		all += r.cost(name)
	}
	return fmt.Sprintf("%.0f: %s", all, strings.Join(each, ", "))
}
