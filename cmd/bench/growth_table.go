package main

import (
	"fmt"
	"text/tabwriter"
)

func (v variant) name() string {
	name := fmt.Sprintf("%d vehicles, %d connected", v.Vehicles, v.Listening)
	if v.History > 0 {
		name += fmt.Sprintf(", %d lines of history", v.History)
	}
	if v.Instances > 1 {
		name += fmt.Sprintf(", %d instances", v.Instances)
	}
	return name
}

func (r growthResult) tables(to *tabwriter.Writer) {
	r.Machine.line(to)
	fmt.Fprintf(to, "%d commands in flight at each instance; Postgres with %s\n\n", r.InFlight, r.Postgres)
	for _, v := range r.Variants {
		fmt.Fprintf(to, "%s\n", v.name())
		fmt.Fprintln(to, "medians\trounds\t/s\tp50 ms\tp90 ms\tp99 ms\tmax ms\tµs CPU a command: service\tPostgres\tRedis\tMosquitto\tthe first three\tms CPU a second at rest\t")
		v.Small.row(to, "small")
		v.Grown.row(to, "grown")
		fmt.Fprintf(to, "a command costs %s of what it does in the small world; vehicles were asked again %d and %d times, %d were connected at the end\n\n",
			v.Cost, v.Small.Repeated, v.Grown.Repeated, v.Grown.Connected)
	}
	if r.Growth > 0 {
		fmt.Fprintf(to, "with a history a command costs at most %.2f\n", r.Growth)
	}
}

// row prints the medians of all rounds.
func (u underLoad) row(to *tabwriter.Writer, name string) {
	m := func(figure func(callRound) float64) float64 { return median(of(u.Rounds, figure)) }
	cost := func(process string) float64 {
		return m(func(r callRound) float64 { return r.cost(process) })
	}
	fmt.Fprintf(to, "%s\t%d\t%.0f\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", name, len(u.Rounds),
		m(func(r callRound) float64 { return r.Rate }),
		quantiles{
			P50: m(p50), P90: m(func(r callRound) float64 { return r.P90 }), P99: m(p99), Max: m(func(r callRound) float64 { return r.Max }),
		},
		m(func(r callRound) float64 { return r.cost("service") + r.cost("service 2") }), cost("postgres"), cost("redis"), cost("mosquitto"),
		m(callRound.serving), median(u.Rest))
}
