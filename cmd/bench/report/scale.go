package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"motorpool/cmd/bench/measure"
)

func writeScale(to io.Writer, r *measure.Results) {
	s := r.Scale
	for _, w := range []measure.ScaleWorld{s.Small, s.Large} {
		writeScaleWorld(to, s, w)
	}
	if s.Limit != "" {
		fmt.Fprintf(to, "%d connected units were wanted: %s\n", s.Wanted, s.Limit)
	}
	writeEach(to, s)
	for _, v := range s.Commands {
		fmt.Fprintf(to, "commands: %d in flight at each instance, of which the large world has %d; medians\n", s.InFlight, v.Instances)
		writeVariant(to, v, "large")
	}
}

func writeScaleWorld(to io.Writer, s *measure.ScaleResult, w measure.ScaleWorld) {
	fmt.Fprintf(to, "%d vehicles on record within %.1f s (%.0f bytes each in Postgres); %d units connected to %d MQTT brokers within %.1f s, %d connections lost\n",
		w.Vehicles, w.Seeding, w.Row, w.Connected, s.Shards, w.Connecting, w.Lost)
	fmt.Fprintf(to, "start without units: ready after %.0f ms\n", w.Alone.Ready)
	for n, start := range w.Starts {
		fmt.Fprintf(to, "start of instance %d: ready after %.0f ms; %d online within a minute, all after %.1f s; s CPU %s\n",
			n+1, start.Ready, start.Online, start.OnlineAfter, used(start.Used, 1, "%.1f"))
	}
	fmt.Fprintf(to, "idle: ms CPU a second %s\n", used(w.Idle, 1000/s.Idle, "%.1f"))
	for _, l := range w.Reports {
		fmt.Fprintf(to, "%d reports at %d instances: %.0f a second, Postgres has all %.1f s after the last one, %.0f bytes of WAL each, lost %v\n\tµs CPU per report %s\n",
			l.Messages, l.Instances, l.Rate, l.Behind, float64(l.WAL)/float64(max(l.Messages, 1)), len(l.Lost), costs(l.Used, l.Messages))
	}
	fmt.Fprintln(to, "list of the fleet\tms\tbytes\t")
	for _, l := range w.Lists {
		fmt.Fprintf(to, "%s\t%.1f\t%d\t%s\n", l.Name, l.Milliseconds, l.Bytes, l.Failure)
	}
	fmt.Fprintf(to, "sweep for silent units: %.1f ms where there are none, %.0f ms for %d\n", w.Sweep.Nothing, w.Sweep.All, w.Sweep.Silent)
	fmt.Fprintln(to, "memory, MB\theap in use\tof\t")
	for _, stage := range w.Memory {
		fmt.Fprintf(to, "%s\t%.1f\t%s\t\n", stage.Name, megabytes(stage.Heap), resident(stage.Resident))
	}
	for _, failure := range w.Failures {
		fmt.Fprintln(to, "FAILED:", failure)
	}
	fmt.Fprintln(to)
}

// writeEach writes the memory per vehicle: what the large world has more than the small one.
func writeEach(to io.Writer, s *measure.ScaleResult) {
	fmt.Fprintln(to, "bytes of memory for each vehicle that the large world has more\tvehicles more\tinstance\tof that in use\tRedis\tMQTT brokers\t")
	for n := range min(len(s.Small.Memory), len(s.Large.Memory)) {
		small, large := s.Small.Memory[n], s.Large.Memory[n]
		more := large.Vehicles - small.Vehicles
		each := func(large, small int64) float64 { return float64(large-small) / float64(max(more, 1)) }
		fmt.Fprintf(to, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.0f\t\n", large.Name, more, each(large.Resident["service"], small.Resident["service"]), each(large.Heap, small.Heap),
			each(large.Resident["redis"], small.Resident["redis"]), each(brokers(large.Resident), brokers(small.Resident)))
	}
}

func brokers(resident map[string]int64) (sum int64) {
	for name, bytes := range resident {
		if strings.HasPrefix(name, "mosquitto") {
			sum += bytes
		}
	}
	return sum
}

// used lists the CPU time of processes, each multiplied.
func used(by measure.ScaleUse, factor float64, format string) string {
	return list(by, func(u measure.Usage) string { return fmt.Sprintf(format, u.CPU*factor) })
}

func resident(by map[string]int64) string {
	return list(by, func(bytes int64) string { return fmt.Sprintf("%.1f", megabytes(bytes)) })
}

func list[T any](by map[string]T, text func(T) string) string {
	var each []string
	for _, name := range slices.Sorted(maps.Keys(by)) {
		each = append(each, name+" "+text(by[name]))
	}
	return cmp.Or(strings.Join(each, ", "), "none")
}

func megabytes(bytes int64) float64 { return float64(bytes) / 1e6 }
