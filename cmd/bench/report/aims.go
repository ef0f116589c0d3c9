package report

import (
	"fmt"
	"io"

	"motorpool/cmd/bench/measure"
)

// aim is what a ratio should be, on two cores.
type aim struct {
	name   string // in bench.json
	what   string
	most   bool // the figure is the largest allowed, otherwise the smallest
	figure float64
}

var aims = []aim{
	{"throughput_256_fair", "throughput with the most in flight, service / fair floor", false, 0.55},
	{"p50_added_ms", "p50 of one in flight, service - floor, ms", true, 2},
	{"cpu_us_per_command", "CPU of the service per command, with the most in flight, µs", true, 250},
	{"memory_ratio_per_waiting", "memory of a waiting command, service / fair floor", true, 1.3},
	{"wake_p99_ms", "answer received -> HTTP answered, many waiting, p99, ms", true, 50},
	{"ingest", "telemetry ingest, service / bare subscriber", false, 0.7},
	{"report_cpu_us_100k", "CPU of all per report of 100,000 vehicles, µs", true, 200},
	{"report_wal_bytes_100k", "WAL per report of 100,000 vehicles, bytes", true, 1024},
	{"report_lag_s_100k", "their last report -> all of it in Postgres, beyond the state interval, s", true, 10},
	{"kib_per_vehicle", "memory of an instance per vehicle that reports, KiB", true, 2},
	{"growth", "CPU per command, large fleet with a long history / small without", true, 1.1},
}

// verdict compares a median with its aim.
func (a aim) verdict(median float64) string {
	if a.most && median <= a.figure || !a.most && median >= a.figure {
		return "met"
	}
	return "missed"
}

func writeAims(to io.Writer, r *measure.Results) {
	if len(r.Spreads) == 0 {
		return
	}
	fmt.Fprintln(to, "\taim\tmedian\tleast\tmost\t\t")
	missed := false
	for _, a := range aims {
		bound := ">="
		if a.most {
			bound = "<="
		}
		s, measured := r.Spreads[a.name]
		if !measured {
			continue
		}
		missed = missed || a.verdict(s.Median) == "missed"
		fmt.Fprintf(to, "%s\t%s %g\t%.2f\t%.2f\t%.2f\t%s\t\n", a.what, bound, a.figure, s.Median, s.Least, s.Most, a.verdict(s.Median))
	}
	if missed {
		fmt.Fprintf(to, "\n\"missed\" says little if something else ran on the machine: its load was %.1f on %d cores at the start\n", r.Machine.Load, r.Machine.Cores)
	}
}
