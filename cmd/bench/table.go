package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// print writes a result: as JSON, or as tables.
func (s stage) print(to io.Writer, result interface{ tables(*tabwriter.Writer) }) error {
	if s.JSON {
		e := json.NewEncoder(to)
		e.SetIndent("", "  ")
		return e.Encode(result)
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	result.tables(t)
	return t.Flush()
}

func (m machine) line(to io.Writer) {
	fmt.Fprintf(to, "%s, %d cores (%s), %s, load %.1f at the start\n", m.At.Format("2006-01-02 15:04 MST"), m.Cores, m.CPU, m.Go, m.Load)
}

func (r ingestResult) tables(to *tabwriter.Writer) {
	r.Machine.line(to)
	for _, f := range r.Fleets {
		fmt.Fprintf(to, "\n%d vehicles, reports of %d bytes\n", f.Vehicles, r.Bytes)
		fmt.Fprintln(to, "round\treports\t/s published\t/s at the end\ts behind\tlost\t")
		for i := range f.Service {
			f.Floor[i].row(to, fmt.Sprintf("floor %d", i+1))
			f.Service[i].row(to, fmt.Sprintf("service %d", i+1))
		}
		if f.Soak != nil {
			f.Soak.row(to, "soak")
		}
		if len(f.Service) == 0 {
			continue
		}
		fmt.Fprintf(to, "ratio of the medians: %.2f\n", f.Ratio)
		fmt.Fprintln(to, "\nprocess\tµs CPU a report\tMB memory\tin\t")
		f.Floor[len(f.Floor)-1].costs(to, "floor")
		f.Service[len(f.Service)-1].costs(to, "service")
		if f.Soak != nil {
			f.Soak.costs(to, "soak")
		}
	}
}

func (r ingestRound) row(to io.Writer, name string) {
	lost := "nothing"
	if err := r.sound(); err != nil {
		lost = err.Error()
	}
	fmt.Fprintf(to, "%s\t%d\t%.0f\t%.0f\t%.2f\t%s\t\n", name, r.Messages, r.Published, r.Rate, r.Behind, lost)
}

func (r ingestRound) costs(to io.Writer, in string) {
	for _, name := range slices.Sorted(maps.Keys(r.Used)) {
		u := r.Used[name]
		fmt.Fprintf(to, "%s\t%.1f\t%.1f\t%s\t\n", name, u.CPU/float64(r.Messages)*1e6, float64(u.Memory)/1e6, in)
	}
}
