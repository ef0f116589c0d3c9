package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"
)

// ingest measures how many reports a second the service writes down, and what a subscriber that only counts would have taken.
type ingest struct {
	stage
	Vehicles []int         `default:"1000,10000" placeholder:"N,…" help:"Sizes of the fleet (default ${default})."`
	Duration time.Duration `default:"15s" placeholder:"DURATION" help:"Of one round (default ${default})."`
	Rounds   int           `default:"3" placeholder:"N" help:"Of the floor and of the service, in turn (default ${default})."`
	Soak     time.Duration `default:"2m" placeholder:"DURATION" help:"At 80 % of the limit, after the rounds; 0s: none (default ${default})."`
	Window   int           `default:"5000" placeholder:"N" help:"Reports on their way, at most, to find the limit; Mosquitto queues 10,000 (default ${default})."`
	Lines    int           `default:"1" placeholder:"N" help:"Connections that carry the reports; more than one that is never idle keeps Mosquitto from reading what its subscribers acknowledge (default ${default})."`
}

// ingestResult is what was measured.
type ingestResult struct {
	Machine machine        `json:"machine"`
	Bytes   int            `json:"report_bytes"`
	Fleets  []fleetIngests `json:"fleets"`
}

type fleetIngests struct {
	Vehicles int           `json:"vehicles"`
	Floor    []ingestRound `json:"floor"`
	Service  []ingestRound `json:"service"`
	Ratio    float64       `json:"ratio"` // of the medians
	Soak     *ingestRound  `json:"soak,omitempty"`
}

// ingestRound is one load, from the first report until the last one was written down, or counted.
type ingestRound struct {
	Messages  int64            `json:"messages"`
	Published float64          `json:"published_per_second"`
	Rate      float64          `json:"per_second"`
	Behind    float64          `json:"seconds_behind"` // from the last report to the end
	Lost      ledger           `json:"lost"`
	Stale     int              `json:"stale_vehicles"` // whose last report is not what Postgres says
	Unread    int              `json:"unread_vehicles"`
	Counts    ledger           `json:"counts"`
	Used      map[string]usage `json:"used"`
}

// sound returns an error where a report was lost.
func (r ingestRound) sound() error {
	if len(r.Lost) > 0 || r.Stale > 0 || r.Unread > 0 {
		return fmt.Errorf("lost %v; the last report of %d vehicles is not in Postgres, of %d not what the API says", r.Lost, r.Stale, r.Unread)
	}
	return nil
}

// soakShare is how much of the limit must be borne for long.
const soakShare = 0.8

func (i ingest) Run(ctx context.Context) error {
	result := ingestResult{Machine: thisMachine(), Bytes: reportSize}
	err := i.measureAll(ctx, &result)
	return errors.Join(err, i.print(os.Stdout, result))
}

// measureAll measures one fleet after the other.
func (i ingest) measureAll(ctx context.Context, result *ingestResult) error {
	var failures []error
	for _, vehicles := range i.Vehicles {
		fleet, err := i.measure(ctx, vehicles)
		if err != nil {
			failures = append(failures, err)
		}
		result.Fleets = append(result.Fleets, fleet)
	}
	return errors.Join(failures...)
}

// measure is one size of the fleet.
func (i ingest) measure(ctx context.Context, vehicles int) (result fleetIngests, err error) {
	result.Vehicles = vehicles
	w, err := i.newWorld(ctx, vehicles)
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, w.tearDown()) }()
	load := &load{world: w, window: i.Window, lines: i.Lines}
	for n := range i.Rounds {
		say("%d vehicles: round %d of %d", vehicles, n+1, i.Rounds)
		floor, err := again(ctx, func() (ingestRound, error) { return load.floor(ctx, i.Duration) }, anything)
		if err != nil {
			return result, err
		}
		result.Floor = append(result.Floor, floor)
		round, err := load.service(ctx, i.Duration, 0)
		if err != nil {
			return result, err
		}
		result.Service = append(result.Service, round)
	}
	limit := median(of(result.Service, atTheEnd))
	result.Ratio = limit / median(of(result.Floor, atTheEnd))
	if i.Soak > 0 {
		say("%d vehicles: %v at %.0f reports a second", vehicles, i.Soak, soakShare*limit)
		soak, err := load.service(ctx, i.Soak, soakShare*limit)
		if err != nil {
			return result, err
		}
		result.Soak = &soak
		return result, soak.sound()
	}
	return result, nil
}

func atTheEnd(r ingestRound) float64 { return r.Rate }
