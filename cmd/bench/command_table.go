package main

import (
	"fmt"
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
				name  string
				round callRound
			}{{"floor", at.Floor[i]}, {"fair floor", at.Fair[i]}, {"service", at.Service[i]}} {
				fmt.Fprintf(to, "%d\t%s\t%.0f\t%s\t%s\t\n", at.InFlight, side.name, side.round.Rate, side.round.quantiles, side.round.costs())
			}
		}
	}
	fmt.Fprintln(to)
	for _, at := range r.At {
		fmt.Fprintf(to, "%d in flight: service / floor %s, service / fair floor %s, p50 %s ms beyond the floor, %s µs of the service's CPU\n", at.InFlight,
			spreadOf(pairs(at.Service, at.Floor, rateRatio)), spreadOf(pairs(at.Service, at.Fair, rateRatio)),
			spreadOf(pairs(at.Service, at.Floor, p50Beyond)), spreadOf(of(at.Service, serviceCost)))
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
