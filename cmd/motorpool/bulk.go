package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"motorpool/guard"
	"motorpool/telematics"
)

// bulk gives one command to many vehicles.
type bulk struct {
	remote
	commandOptions
	Action   string   `arg:"" help:"The action, such as lock."`
	Vehicles []string `arg:"" help:"Ids or plates of vehicles, 1,000 at most."`
	Signal   string   `enum:"horn,lights,both," default:"" placeholder:"SIGNAL" env:"-" help:"With attention: horn, lights or both."`
}

// bulkEvery is the interval at which bulk polls the state of its commands.
const bulkEvery = 500 * time.Millisecond

type bulkState struct {
	ID      string `json:"id"`
	Summary struct {
		Total       int `json:"total"`
		Open        int `json:"open"`
		NotExecuted int `json:"not_executed"`
		Failed      int `json:"failed"`
		Unknown     int `json:"unknown"`
	} `json:"summary"`
}

// Run waits until no vehicle is open any more, unless --async. The worst outcome is the exit code.
func (b bulk) Run(ctx context.Context) error {
	headers, err := commandOptions{Wait: b.Wait, Key: b.Key}.headers()
	if err != nil {
		return err
	}
	body := map[string]any{"action": b.Action}
	if b.Signal != "" {
		body["parameters"] = map[string]any{"signal": b.Signal}
	}
	var ids []int64
	for _, name := range b.Vehicles {
		id, err := b.vehicleID(ctx, name)
		if err != nil {
			return err
		}
		ids = append(ids, id)
	}
	body["vehicle_ids"] = ids
	e, err := b.send(ctx, http.MethodPost, "commands", body, headers...)
	if err != nil {
		return err
	}
	state, err := readBulk(e)
	if err != nil {
		return err
	}
	for end := time.Now().Add(telematics.MaxBudget + 10*time.Second); !b.Async && state.Summary.Open > 0 && time.Now().Before(end); {
		if !guard.Pause(ctx, bulkEvery) {
			return failure{exitUnknown, fmt.Errorf("not all vehicles have answered yet; check: motorpool bulk-status %s", state.ID)}
		}
		next, err := b.send(ctx, http.MethodGet, "commands?bulk="+url.QueryEscape(state.ID), nil)
		if err != nil {
			fmt.Fprintf(stderr, "motorpool: %v\n", err) // the next poll may succeed
			continue
		}
		e = next
		if state, err = readBulk(e); err != nil {
			return err
		}
	}
	return b.finish(e, state)
}

func (b bulk) finish(e envelope, state bulkState) error {
	if err := b.showBulk(e); err != nil {
		return err
	}
	s := state.Summary
	switch {
	case s.Unknown > 0, s.Open > 0 && !b.Async:
		return failure{
			exitUnknown,
			fmt.Errorf(
				"%d of %d vehicles may have executed the command; check: motorpool bulk-status %s", s.Unknown+s.Open,
				s.Total, state.ID,
			),
		}
	case s.Failed > 0:
		return failure{exitFailed, fmt.Errorf("the command failed at %d of %d vehicles", s.Failed, s.Total)}
	case s.NotExecuted > 0:
		return refused("%d of %d vehicles did not execute the command", s.NotExecuted, s.Total)
	}
	return nil
}

func readBulk(e envelope) (bulkState, error) {
	var state bulkState
	err := json.Unmarshal(e.Data, &state)
	return state, err
}

// showBulk prints a row for each vehicle.
func (r remote) showBulk(e envelope) error {
	if !r.wantsTable() {
		return r.show(e, nil)
	}
	var data struct {
		Items json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	e.Data = data.Items
	return r.show(e, []column{
		"VEHICLE vehicle_id", "STATE command.state", "COMMAND command.id", "CODE error.code", "MESSAGE message",
	})
}

// bulkStatus shows the state of a command to many vehicles.
type bulkStatus struct {
	remote
	ID string `arg:"" help:"Id, as bulk prints it."`
}

func (b bulkStatus) Run(ctx context.Context) error {
	e, err := b.send(ctx, http.MethodGet, "commands?bulk="+url.QueryEscape(b.ID), nil)
	if err != nil {
		return err
	}
	return b.showBulk(e)
}
