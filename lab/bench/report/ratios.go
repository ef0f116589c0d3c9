package report

// ratio is a figure to compare builds by: of a figure, or of two figures of each round.
type ratio struct {
	name   string // in bench.json
	figure string
	with   string // "/", "-", or nothing
	other  string
	aim    string // on two cores
}

var ratios = []ratio{
	{"throughput_256_fair", "Command/in-flight=256/side=service ops/s", "/", "Command/in-flight=256/side=fair ops/s", "≥ 0.55"},
	{"throughput_256", "Command/in-flight=256/side=service ops/s", "/", "Command/in-flight=256/side=echo ops/s", ""},
	{"p50_added_ms", "Command/in-flight=1/side=service p50-ms", "-", "Command/in-flight=1/side=echo p50-ms", "≤ 2"},
	{"cpu_us_per_command", "Command/in-flight=256/side=service µs-service", "", "", "≤ 250"},
	{"durable_1", "Command/in-flight=1/side=service ops/s", "/", "Command/in-flight=1/side=durable ops/s", ""},
	{"durable_4", "Command/in-flight=4/side=service ops/s", "/", "Command/in-flight=4/side=durable ops/s", ""},
	{"durable_16", "Command/in-flight=16/side=service ops/s", "/", "Command/in-flight=16/side=durable ops/s", ""},
	{"durable_64", "Command/in-flight=64/side=service ops/s", "/", "Command/in-flight=64/side=durable ops/s", ""},
	{"durable_256", "Command/in-flight=256/side=service ops/s", "/", "Command/in-flight=256/side=durable ops/s", ""},
	{"p50_over_durable_ms", "Command/in-flight=1/side=service p50-ms", "-", "Command/in-flight=1/side=durable p50-ms", ""},
	{"cpu_durable_1", "Command/in-flight=1/side=service µs-service", "/", "Command/in-flight=1/side=durable µs-handler", ""},
	{"cpu_durable_16", "Command/in-flight=16/side=service µs-service", "/", "Command/in-flight=16/side=durable µs-handler", ""},
	{"cpu_durable_256", "Command/in-flight=256/side=service µs-service", "/", "Command/in-flight=256/side=durable µs-handler", ""},
	{"slow_cars_cost", "Command/cars=slow/side=service µs-servers", "/", "Command/in-flight=16/side=service µs-servers", ""},
	{"kib_per_waiting", "Waiting/side=service KiB-each", "", "", ""},
	{"memory_ratio_per_waiting", "Waiting/side=service KiB-each", "/", "Waiting/side=fair KiB-each", "≤ 1.3"},
	{"wake_p99_ms", "Waiting/side=service settled-p99-ms", "", "", "≤ 50"},
	{"ingest", "Ingest/side=service reports/s", "/", "Ingest/side=subscriber reports/s", "≥ 0.7"},
	{"report_cpu_us_100k", "Fleet/side=service µs-servers", "", "", "≤ 200"},
	{"report_wal_bytes_100k", "Fleet/side=service WAL-bytes", "", "", "≤ 1024"},
	{"report_lag_s_100k", "Fleet/side=service s-late", "", "", "≤ 10"},
	{"kib_per_vehicle", "Fleet/side=service KiB-each", "", "", "≤ 2"},
	{"start_added_ms", "Rental/side=service added-ms", "", "", "≤ 3"},
	{"growth", "Scale/commands/side=large µs-but-MQTT", "/", "Scale/commands/side=small µs-but-MQTT", "≤ 1.1"},
}

// values returns the ratio of each round; none: it was not measured.
func (of ratio) values(figures map[string][]float64) (all []float64) {
	ours, theirs := figures[of.figure], figures[of.other]
	if of.with == "" {
		return ours
	}
	for n := range min(len(ours), len(theirs)) {
		if of.with == "/" {
			all = append(all, ours[n]/theirs[n])
		} else {
			all = append(all, ours[n]-theirs[n])
		}
	}
	return all
}
