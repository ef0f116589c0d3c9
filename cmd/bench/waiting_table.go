package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

func (r waitingResult) tables(to *tabwriter.Writer) {
	r.Machine.line(to)
	network := cellular(r.Network * float64(time.Second))
	fmt.Fprintf(to, "%d vehicles over %d connections, all locked within %.1f s; each answers after %.3g to %.3g s and %.1f s; Postgres with %s\n",
		r.Vehicles, r.Connections, r.Ramp, network.least().Seconds(), network.most().Seconds(), r.Hold, r.Postgres)
	if r.Vehicles < r.Wanted {
		fmt.Fprintln(to, r.tooFewFiles())
	}
	fmt.Fprintln(to, "\n\tanswered\tordered in s\tpeak in flight\tof those out\tMB before\tMB most\tMB after\tKiB each\t")
	r.each(func(name string, round waitingRound) {
		out := ""
		if round.Settled != nil {
			out = fmt.Sprint(round.Out)
		}
		fmt.Fprintf(to, "%s\t%d\t%.2f\t%d\t%s\t%.1f\t%.1f\t%.1f\t%.1f\t\n", name, round.Answered, round.Sending, round.Peak, out,
			float64(round.Before)/1e6, float64(round.Most)/1e6, float64(round.After)/1e6, round.Each)
	})
	fmt.Fprintln(to, "\nto the caller, from\tp50 ms\tp90 ms\tp99 ms\tmax ms\t")
	r.each(func(name string, round waitingRound) {
		fmt.Fprintf(to, "%s: the vehicle\t%s\t\n", name, round.Added)
		if round.Settled != nil {
			fmt.Fprintf(to, "%s: the settlement\t%s\t\n", name, round.Settled)
		}
	})
	fmt.Fprintln(to, "\n\tlocked\trepeats ignored\tpublished\tanswers lost\thistory lines\tµs CPU a command\t")
	r.each(func(name string, round waitingRound) {
		booked := "\t\t"
		if round.Settled != nil {
			booked = fmt.Sprintf("%d\t%d\t%d", round.Publications, round.Lost, round.Lines)
		}
		fmt.Fprintf(to, "%s\t%d\t%d\t%s\t%s\t\n", name, round.Started, round.Repeated, booked, round.costs())
	})
	fmt.Fprintf(to, "\nmemory is resident, with the callers' connections, their goroutines and their buffers: one that waits takes %s KiB of the service, %s KiB of the fair floor\n",
		spreadOf(of(r.Service, kibEach)), spreadOf(of(r.Floor, kibEach)))
	fmt.Fprintf(to, "from the vehicle to the caller, p99: %s ms, fair floor %s ms; with the wait in Mosquitto behind others' answers\n",
		spreadOf(of(r.Service, addedP99)), spreadOf(of(r.Floor, addedP99)))
}

// each shows the rounds as they took turns.
func (r waitingResult) each(show func(name string, round waitingRound)) {
	for i, floor := range r.Floor {
		show(fmt.Sprintf("fair floor %d", i+1), floor)
		if i < len(r.Service) {
			show(fmt.Sprintf("service %d", i+1), r.Service[i])
		}
	}
}

func kibEach(r waitingRound) float64  { return r.Each }
func addedP99(r waitingRound) float64 { return r.Added.P99 }

// costs lists what each process took for one command.
func (r waitingRound) costs() string {
	var each []string
	for _, name := range slices.Sorted(maps.Keys(r.Used)) {
		each = append(each, fmt.Sprintf("%s %.0f", name, r.Used[name].CPU/float64(r.Answered+r.Refused)*1e6))
	}
	return strings.Join(each, ", ")
}
