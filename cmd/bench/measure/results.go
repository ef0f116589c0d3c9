package measure

// Results are what the experiments measured. An experiment that was not made is nil.
type Results struct {
	Machine Machine             `json:"machine"`
	Rounds  int                 `json:"rounds"`
	Ratios  map[string]*float64 `json:"ratios"` // medians; null: not measured
	Spreads map[string]Spread   `json:"spreads"`
	Command *CommandResult      `json:"command,omitempty"`
	Waiting *WaitingResult      `json:"waiting,omitempty"`
	Growth  *GrowthResult       `json:"growth,omitempty"`
	Ingest  *IngestResult       `json:"ingest,omitempty"`
	Fleet   *FleetResult        `json:"fleet,omitempty"`
	Scale   *ScaleResult        `json:"scale,omitempty"`
}

// Sum derives the ratios from the rounds.
func (r *Results) Sum() {
	r.Ratios, r.Spreads = map[string]*float64{}, map[string]Spread{}
	put := func(name string, values []float64) {
		r.Ratios[name] = nil
		if len(values) > 0 {
			s := SpreadOf(values)
			r.Ratios[name], r.Spreads[name] = &s.Median, s
		}
	}
	var one, most CommandAt
	if r.Command != nil && len(r.Command.At) > 0 {
		one, most = r.Command.At[0], r.Command.At[len(r.Command.At)-1]
	}
	put("throughput_256_fair", Pairs(most.Service, most.Fair, RateRatio))
	put("throughput_256", Pairs(most.Service, most.Floor, RateRatio))
	put("cpu_us_per_command", Of(most.Service, func(r Round) float64 { return r.Cost("service") }))
	put("p50_added_ms", Pairs(one.Service, one.Floor, P50Added))
	var waiting WaitingResult
	if r.Waiting != nil {
		waiting = *r.Waiting
	}
	put("wake_p99_ms", Of(waiting.Service, func(r WaitingRound) float64 { return r.Settled.P99 }))
	put("kib_per_waiting", Of(waiting.Service, func(r WaitingRound) float64 { return r.Each }))
	put("memory_ratio_per_waiting", Pairs(waiting.Service, waiting.Floor, func(service, floor WaitingRound) float64 { return service.Each / floor.Each }))
	var ingest FleetIngest
	if r.Ingest != nil && len(r.Ingest.Fleets) > 0 {
		ingest = r.Ingest.Fleets[0]
	}
	put("ingest", ingest.Ratios())
	var fleet FleetResult
	if r.Fleet != nil {
		fleet = *r.Fleet
	}
	put("report_cpu_us_100k", Of(fleet.Rounds, FleetRound.Cost))
	put("report_wal_bytes_100k", Of(fleet.Rounds, FleetRound.WALPerReport))
	put("report_lag_s_100k", Of(fleet.Rounds, func(r FleetRound) float64 { return r.Lag }))
	put("kib_per_vehicle", Of(fleet.Rounds, func(r FleetRound) float64 { return r.Each / (1 << 10) }))
	put("growth", r.Growth.ratios())
}

// Ratios compares the service with its floor, round by round.
func (f FleetIngest) Ratios() []float64 {
	return Pairs(f.Service, f.Floor, func(service, floor IngestRound) float64 { return service.Rate / floor.Rate })
}

// ratios are those of the largest fleet with its history and one instance.
func (r *GrowthResult) ratios() []float64 {
	if r == nil {
		return nil
	}
	for _, v := range r.Variants {
		if v.History > 0 && v.Instances == 1 {
			return v.Ratios()
		}
	}
	return nil
}
