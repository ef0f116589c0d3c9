package measure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"motorpool/cmd/bench/load"
)

// Status measures reading a vehicle's status, each with its audit log entry. The floor returns the
// same bytes.
type Status struct {
	Vehicles    int           `default:"1000" placeholder:"N" help:"All of which have reported (default ${default})."`
	Connections []int         `default:"1,64" placeholder:"N,…" help:"Keep-alive connections, each with one request at a time (default ${default})."`
	Duration    time.Duration `default:"4s" placeholder:"DURATION" help:"Of one round (default ${default})."`
}

// StatusResult is what Status measured.
type StatusResult struct {
	Bytes int         `json:"answer_bytes"`
	Reads []ReadsOver `json:"reads"`
}

// ReadsOver is what was measured over a number of connections.
type ReadsOver struct {
	Connections int     `json:"connections"`
	Floor       []Round `json:"floor"`
	Service     []Round `json:"service"`
}

// Measure implements Experiment.
func (c *Status) Measure(ctx context.Context, s Setup, r *Results) (err error) {
	r.Status = &StatusResult{}
	w, err := s.newWorld(ctx, c.Vehicles, r)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	n, err := w.serve(ctx, soonStored)
	if err != nil {
		return err
	}
	if err := (&reportLoad{testWorld: w}).reportOnce(ctx, n); err != nil {
		return err
	}
	body, err := w.get(ctx, n.Public+fmt.Sprintf(load.StatusPath, 1))
	if err != nil {
		return err
	}
	r.Status.Bytes = len(body)
	floor, floorURL, err := load.Serve(ctx, &StaticFloor{string(body)})
	if err != nil {
		return err
	}
	w.OnClose(floor.Close)
	var failures []error
	for _, connections := range c.Connections {
		over := ReadsOver{Connections: connections}
		of := func(rounds *[]Round, url string, processes meters, action string) side[Round] {
			requests := w.requests(http.MethodGet, load.StatusPath, load.Spread(w.fleet, w.fleet), connections, url)
			return side[Round]{rounds, func() (Round, error) { return w.measure(ctx, requests, c.Duration, processes, action) }}
		}
		if err := takeTurns(s.Rounds, fmt.Sprintf("%d connections", connections), of(&over.Floor, floorURL, meters{"floor": floor.PID()}, ""),
			of(&over.Service, n.Public, w.processes(n), statusAction)); err != nil {
			return err
		}
		for _, served := range over.Service {
			failures = append(failures, served.check())
		}
		r.Status.Reads = append(r.Status.Reads, over)
	}
	return errors.Join(failures...)
}
