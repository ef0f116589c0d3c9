// Package report presents what package measure measured: as tables and as JSON.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"motorpool/cmd/bench/load"
	"motorpool/cmd/bench/measure"
)

// JSON returns all results.
func JSON(r *measure.Results) ([]byte, error) {
	text, err := json.MarshalIndent(r, "", "  ")
	return append(text, '\n'), err
}

// Tables writes the results as tables, with the aims.
func Tables(w io.Writer, r *measure.Results) error {
	to := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	m := r.Machine
	fmt.Fprintf(to, "%s, %d cores (%s), %s, load %.1f at the start; Postgres with %s\n\n", m.At.Format("2006-01-02 15:04 MST"), m.Cores, m.CPU, m.Go, m.Load, m.Postgres)
	for _, part := range []struct {
		name     string
		measured bool
		write    func(io.Writer, *measure.Results)
	}{
		{"command", r.Command != nil, writeCommand},
		{"waiting", r.Waiting != nil, writeWaiting},
		{"ingest", r.Ingest != nil, writeIngest},
		{"fleet", r.Fleet != nil, writeFleet},
		{"growth", r.Growth != nil, writeGrowth},
		{"scale", r.Scale != nil, writeScale},
	} {
		if part.measured {
			fmt.Fprintf(to, "%s\n", strings.ToUpper(part.name))
			part.write(to, r)
			fmt.Fprintln(to)
		}
	}
	writeAims(to, r)
	return to.Flush()
}

// costs lists the CPU time of all processes, each and in all, in microseconds for each of a number
// of calls.
func costs(used map[string]measure.Usage, calls int64) string {
	var each []string
	all := 0.0
	for _, name := range slices.Sorted(maps.Keys(used)) {
		cost := used[name].CPU / float64(max(calls, 1)) * 1e6
		each = append(each, fmt.Sprintf("%s %.0f", name, cost))
		all += cost
	}
	return fmt.Sprintf("%.0f: %s", all, strings.Join(each, ", "))
}

// latency is four cells.
func latency(q load.Quantiles) string {
	return fmt.Sprintf("%.2f\t%.2f\t%.2f\t%.2f", q.P50, q.P90, q.P99, q.Max)
}

const roundHead = "/s\tp50 ms\tp90 ms\tp99 ms\tmax ms\trefused\tµs CPU per call\t"

func writeRound(to io.Writer, name string, r measure.Round) {
	fmt.Fprintf(to, "%s\t%.0f\t%s\t%d\t%s\t\n", name, r.Rate, latency(r.Quantiles), r.Refused, costs(r.Used, r.Answered))
}

func writeCommand(to io.Writer, r *measure.Results) {
	fmt.Fprintf(to, "%d vehicles, messages of %d bytes\n\t%s\n", r.Command.Vehicles, r.Command.Bytes, roundHead)
	for _, at := range r.Command.At {
		for i := range at.Service {
			for _, side := range []struct {
				name   string
				rounds []measure.Round
			}{{"floor", at.Floor}, {"fair floor", at.Fair}, {"service", at.Service}, {"other build", at.Against}} {
				if i < len(side.rounds) {
					writeRound(to, fmt.Sprintf("%d in flight, %s", at.InFlight, side.name), side.rounds[i])
				}
			}
		}
	}
	for _, at := range r.Command.At {
		fmt.Fprintf(to, "%d in flight:", at.InFlight)
		for _, c := range []struct {
			name    string
			figures []float64
		}{
			{"service / floor", measure.Pairs(at.Service, at.Floor, measure.RateRatio)},
			{"service / fair floor", measure.Pairs(at.Service, at.Fair, measure.RateRatio)},
			{"p50 beyond the floor, ms", measure.Pairs(at.Service, at.Floor, measure.P50Added)},
			{"service / other build", measure.Pairs(at.Service, at.Against, measure.RateRatio)},
			{"µs CPU of the service", measure.Of(at.Service, func(r measure.Round) float64 { return r.Cost("service") })},
			{"of the other build", measure.Of(at.Against, func(r measure.Round) float64 { return r.Cost("service") })},
		} {
			if len(c.figures) > 0 {
				fmt.Fprintf(to, " %s %s;", c.name, measure.SpreadOf(c.figures))
			}
		}
		fmt.Fprintln(to)
	}
}

func writeWaiting(to io.Writer, r *measure.Results) {
	w := r.Waiting
	fmt.Fprintf(to, "%d of %d vehicles, all locked within %.1f s; median network latency %.3g s, and %.1f s\n", w.Vehicles, w.Wanted, w.Ramp, w.Network, w.Hold)
	fmt.Fprintln(to, "\tanswered\trefused\texecuted\trepeated\tpeak in flight\tMB before\tMB most\tMB after\tKiB each\tµs CPU per command\t")
	each := func(write func(name string, round measure.WaitingRound)) {
		for i := range w.Service {
			write(fmt.Sprintf("fair floor %d", i+1), w.Floor[i])
			write(fmt.Sprintf("service %d", i+1), w.Service[i])
		}
	}
	each(func(name string, round measure.WaitingRound) {
		fmt.Fprintf(to, "%s\t%d\t%d\t%d\t%d\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t%s\t\n", name, round.Answered, round.Refused, round.Executed, round.Repeated,
			round.Peak, megabytes(round.Before), megabytes(round.Most), megabytes(round.After), round.Each, costs(round.Used, int64(round.Answered)))
	})
	fmt.Fprintln(to, "\nto the caller, from\tp50 ms\tp90 ms\tp99 ms\tmax ms\t")
	each(func(name string, round measure.WaitingRound) {
		fmt.Fprintf(to, "%s: the unit's answer\t%s\t\n", name, latency(round.Added))
		if round.Settled.Max > 0 {
			fmt.Fprintf(to, "%s: the settlement\t%s\t\n", name, latency(round.Settled))
		}
	})
}

func writeIngest(to io.Writer, r *measure.Results) {
	for _, f := range r.Ingest.Fleets {
		fmt.Fprintf(to, "%d vehicles, reports of %d bytes\n\treports\t/s published\t/s at the end\ts behind\tlost\tµs CPU per report\t\n", f.Vehicles, r.Ingest.Bytes)
		row := func(name string, round measure.IngestRound) {
			lost := "nothing"
			if err := round.Check(); err != nil {
				lost = err.Error()
			}
			fmt.Fprintf(to, "%s\t%d\t%.0f\t%.0f\t%.2f\t%s\t%s\t\n", name, round.Messages, round.Published, round.Rate, round.Behind, lost, costs(round.Used, round.Messages))
		}
		for i := range f.Service {
			row(fmt.Sprintf("floor %d", i+1), f.Floor[i])
			row(fmt.Sprintf("service %d", i+1), f.Service[i])
		}
		if f.Soak != nil {
			row("soak", *f.Soak)
		}
		fmt.Fprintf(to, "service / floor %s\n", measure.SpreadOf(f.Ratios()))
	}
}

func writeFleet(to io.Writer, r *measure.Results) {
	f := r.Fleet
	fmt.Fprintf(to, "%d vehicles, %.0f reports a second of %d bytes for %.0f s, %d instances, state interval %.0f s\n", f.Vehicles, f.Rate, f.Bytes, f.Duration, f.Instances, f.Interval)
	fmt.Fprintln(to, "\treports\tlost\ts until stored\ts beyond the interval\tWAL bytes per report\tof full pages\tKiB per vehicle\tµs CPU per report\t")
	for i, round := range f.Rounds {
		lost := "nothing"
		if err := round.Check(); err != nil {
			lost = err.Error()
		}
		fmt.Fprintf(to, "round %d\t%d\t%s\t%.1f\t%.1f\t%.0f\t%.0f\t%.2f\t%s\t\n", i+1, round.Messages, lost, round.Stored, round.Lag,
			round.WALPerReport(), float64(round.FullPages)/float64(max(round.Messages, 1)), round.Each/(1<<10), costs(round.Used, round.Messages))
	}
}

func writeGrowth(to io.Writer, r *measure.Results) {
	fmt.Fprintf(to, "%d commands in flight at each instance; medians\n", r.Growth.InFlight)
	for _, v := range r.Growth.Variants {
		fmt.Fprintf(to, "%v\n", v)
		writeVariant(to, v, "grown")
	}
}

// writeVariant compares a world, by its name, with the small one.
func writeVariant(to io.Writer, v measure.Variant, name string) {
	fmt.Fprintln(to, "\t/s\tp50 ms\tp99 ms\tµs CPU per command: service\tPostgres\tRedis\tthese three\t")
	for _, side := range []struct {
		name   string
		rounds []measure.Round
	}{{"small", v.Small}, {name, v.Grown}} {
		median := func(figure func(measure.Round) float64) float64 {
			return measure.Median(measure.Of(side.rounds, figure))
		}
		cost := func(processes ...string) float64 {
			return median(func(r measure.Round) float64 { return r.Cost(processes...) })
		}
		fmt.Fprintf(to, "%s\t%.0f\t%.2f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t\n", side.name, median(func(r measure.Round) float64 { return r.Rate }),
			median(func(r measure.Round) float64 { return r.P50 }), median(func(r measure.Round) float64 { return r.P99 }), cost("service", "service 2"), cost("postgres"), cost("redis"), median(measure.Round.Serving))
	}
	fmt.Fprintf(to, "a command costs %s of what it does in the small world\n", v.Cost)
}
