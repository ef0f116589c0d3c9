package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/telematics"
)

// vehicle has the argument of commands about one vehicle.
type vehicle struct {
	remote
	Vehicle string `arg:"" help:"Number or plate of the vehicle."`
}

func (v vehicle) call(ctx context.Context, method, path string, body any, headers ...string) error {
	id, err := v.vehicleID(ctx, v.Vehicle)
	if err != nil {
		return err
	}
	return v.remote.call(ctx, method, fmt.Sprintf("vehicles/%d/%s", id, path), body, headers...)
}

// commandOptions has the flags of commands to vehicles.
type commandOptions struct {
	Wait  *int    `env:"-" placeholder:"SECONDS" help:"How long the vehicle may take, 1 to 30 (default the service's)."`
	Async bool    `env:"-" help:"Do not wait for the vehicle."`
	Key   *string `name:"idempotency-key" env:"-" placeholder:"KEY" help:"${operate_idempotency_key}."`
}

// headers returns the names and values of HTTP headers alternately.
func (m commandOptions) headers() ([]string, error) {
	var headers []string
	if m.Wait != nil {
		if wait := time.Duration(*m.Wait) * time.Second; wait < telematics.MinBudget || wait > telematics.MaxBudget {
			return nil, badUsage("--wait: want 1 to 30 seconds")
		}
		headers = append(headers, "Prefer", fmt.Sprintf("wait=%d", *m.Wait))
	}
	if m.Async {
		headers = append(headers, "Prefer", "respond-async")
	}
	if m.Key != nil {
		if *m.Key == "" { // of a script whose variable is not set
			return nil, badUsage("--idempotency-key: want a name that is not empty")
		}
		headers = append(headers, "Idempotency-Key", *m.Key)
	}
	return headers, nil
}

type control struct {
	vehicle
	commandOptions
}

func (c control) Run(ctx context.Context, parsed *kong.Context) error {
	return c.order(ctx, parsed.Selected().Name, nil)
}

func (c control) order(ctx context.Context, action string, body any) error {
	headers, err := c.headers()
	if err != nil {
		return err
	}
	return c.call(ctx, http.MethodPost, "control/"+action, body, headers...)
}

type attention struct {
	control
	Signal     string `enum:"horn,lights,both" default:"both" env:"-" help:"horn, lights or both."`
	DurationMS int    `name:"duration-ms" default:"1000" env:"-" placeholder:"N" help:"Length of the pulse in milliseconds, 1 to 5000."`
}

func (a attention) Run(ctx context.Context) error {
	return a.order(ctx, "attention", map[string]any{"signal": a.Signal, "duration_ms": a.DurationMS})
}

type status struct {
	vehicle
	Refresh bool `env:"-" help:"Ask the vehicle's unit first. It wakes the unit, so it is limited."`
	Wait    *int `env:"-" placeholder:"SECONDS" help:"With --refresh: how long the unit may take, 1 to 30 (default the service's)."`
}

func (s status) Run(ctx context.Context) error {
	if !s.Refresh {
		if s.Wait != nil {
			return badUsage("--wait: only with --refresh, nothing else takes its time")
		}
		return s.call(ctx, http.MethodGet, "status", nil)
	}
	headers, err := commandOptions{Wait: s.Wait}.headers()
	if err != nil {
		return err
	}
	return s.call(ctx, http.MethodGet, "status?refresh=true", nil, headers...)
}

type command struct {
	remote
	ID string `arg:"" help:"Id of the command."`
}

func (c command) Run(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "commands/"+url.PathEscape(c.ID), nil)
}

// candidate is a vehicle that a text finds.
type candidate struct {
	ID    int64  `json:"id"`
	Plate string `json:"plate_number"`
}

func (c candidate) String() string { return fmt.Sprintf("%d (%s)", c.ID, c.Plate) }

const (
	candidatesPage = 200    // the most that the service lists
	maxCandidates  = 10_000 // fifty requests, of which an administrator has 600 a minute
)

// candidates returns all vehicles that a text finds.
func (r remote) candidates(ctx context.Context, text string) (all []candidate, err error) {
	query := url.Values{"limit": {strconv.Itoa(candidatesPage)}, "q": {text}}
	for {
		e, err := r.send(ctx, http.MethodGet, "vehicles?"+query.Encode(), nil)
		if err != nil {
			return nil, err
		}
		var page []candidate
		if err := json.Unmarshal(e.Data, &page); err != nil {
			return nil, fmt.Errorf("read vehicles: %w", err)
		}
		all = append(all, page...)
		switch {
		case e.Meta.NextCursor == "":
			return all, nil
		case len(all) >= maxCandidates:
			return nil, badUsage("%q is a part of more than %d plates and names; give the number", text, maxCandidates)
		}
		query.Set("cursor", e.Meta.NextCursor)
	}
}

// vehicleID returns the vehicle with a number, or with a plate. A plate must be the whole one,
// however it is written, and that of one vehicle: a command moves a car, so none is guessed.
func (r remote) vehicleID(ctx context.Context, name string) (int64, error) {
	// 0042 may be what the fleet calls another vehicle.
	if id, err := strconv.ParseInt(name, 10, 64); err == nil && strconv.FormatInt(id, 10) == name {
		return id, nil
	}
	name = strings.TrimSpace(name)
	if name == "" {
		return 0, badUsage("want the number or the plate of a vehicle")
	}
	found, err := r.candidates(ctx, name)
	if err != nil {
		return 0, err
	}
	var exact []candidate
	for _, c := range found {
		if telematics.Plain(c.Plate) == telematics.Plain(name) {
			exact = append(exact, c)
		}
	}
	switch {
	case len(exact) == 1:
		return exact[0].ID, nil
	case len(exact) > 1:
		return 0, badUsage("several vehicles have the plate %q: %s; give the number", name, listed(exact))
	case len(found) > 0:
		return 0, badUsage("no vehicle has the plate %q; similar: %s", name, listed(found))
	}
	return 0, refused("there is no vehicle with the plate %q", name)
}

// listed returns the first of some candidates.
func listed(list []candidate) string {
	names := make([]string, min(len(list), 10))
	for i := range names {
		names[i] = list[i].String()
	}
	return strings.Join(names, ", ")
}
