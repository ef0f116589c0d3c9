package measure

import (
	"context"
	"fmt"
	"time"

	"motorpool/cmd/bench/load"
)

// Round is one load of calls, on a floor or on the service.
type Round struct {
	load.Called
	Entries int64            `json:"history_lines"` // of the audit log, added by the load
	Used    map[string]Usage `json:"used"`
}

// Cost is microseconds of CPU time per call, of some processes.
func (r Round) Cost(processes ...string) float64 {
	sum := 0.0
	for _, name := range processes {
		sum += r.Used[name].CPU
	}
	return sum / float64(r.Answered) * 1e6
}

// RateRatio compares answers a second.
func RateRatio(service, floor Round) float64 { return service.Rate / floor.Rate }

// P50Added is the difference of the medians, in milliseconds.
func P50Added(service, floor Round) float64 { return service.P50 - floor.P50 }

// check returns an error where the service refused a call, or an audit log entry is missing.
func (r Round) check() error {
	if r.Refused > 0 || r.Entries != r.Answered {
		return fmt.Errorf("%d answered, %d refused (%s), %d audit log entries", r.Answered, r.Refused, r.Why, r.Entries)
	}
	return nil
}

// side is the service or a floor: what measures one round, and where the rounds go.
type side[R any] struct {
	rounds  *[]R
	measure func() (R, error)
}

// takeTurns measures the sides round by round.
func takeTurns[R any](rounds int, what string, sides ...side[R]) error {
	for n := range rounds {
		Say("%s: round %d of %d", what, n+1, rounds)
		for _, s := range sides {
			r, err := s.measure()
			if err != nil {
				return err
			}
			*s.rounds = append(*s.rounds, r)
		}
	}
	return nil
}

// calls returns a job whose result is load.Called, for a duration.
type calls func(d time.Duration) load.Job

// requests sends requests to one or more URLs.
func (w *testWorld) requests(method, path string, vehicles load.Vehicles, inFlight int, urls ...string) calls {
	return func(d time.Duration) load.Job {
		return &load.Requests{URLs: urls, Token: w.token, Method: method, Path: path, Vehicles: vehicles, InFlight: inFlight, For: d}
	}
}

// measure warms up, measures calls, and counts the audit log entries of an action, if there is one.
func (w *testWorld) measure(ctx context.Context, c calls, d time.Duration, processes meters, action string) (r Round, err error) {
	count, err := w.db.entriesSince(ctx, action)
	if err != nil {
		return r, err
	}
	var warm load.Called
	if _, err := load.Do(ctx, c(d/8), &warm); err != nil {
		return r, err
	}
	used, err := processes.start()
	if err != nil {
		return r, err
	}
	state, err := load.Do(ctx, c(d), &r.Called)
	if err != nil {
		return r, err
	}
	if r.Used, err = used(); err != nil {
		return r, err
	}
	r.Used["caller"] = usageAtEnd(state)
	if action != "" {
		r.Entries, err = count()
		r.Entries -= warm.Answered
	}
	return r, err
}
