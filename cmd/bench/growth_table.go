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
		fmt.Fprintln(to, "\t/s\tp50 ms\tp90 ms\tp99 ms\tmax ms\tµs CPU a command: service\tPostgres\tRedis\tMosquitto\tthe first three\tms CPU a second at rest\t")
		for i := range min(len(v.Small.Rounds), len(v.Grown.Rounds)) {
			v.Small.row(to, "small", i)
			v.Grown.row(to, "grown", i)
		}
		fmt.Fprintf(to, "a command costs %s of what it does in the small world; vehicles were asked again %d and %d times, %d were connected at the end\n\n",
			v.Cost, v.Small.Repeated, v.Grown.Repeated, v.Grown.Connected)
	}
	if r.Growth > 0 {
		fmt.Fprintf(to, "with a history a command costs at most %.2f\n", r.Growth)
	}
}

func (u underLoad) row(to *tabwriter.Writer, name string, i int) {
	r := u.Rounds[i]
	fmt.Fprintf(to, "%s\t%.0f\t%s\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", name, r.Rate, r.quantiles,
		r.cost("service")+r.cost("service 2"), r.cost("postgres"), r.cost("redis"), r.cost("mosquitto"), r.serving(), u.Rest[i])
}
