package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// maxCandidates is how many vehicles are looked through for a plate: a page of the service.
const maxCandidates = 200

// vehicleID returns the vehicle with a number, or with a plate. A plate must be the whole one, in
// any case: a command moves a car, so none is guessed.
func (r remote) vehicleID(ctx context.Context, name string) (int64, error) {
	if id, err := strconv.ParseInt(name, 10, 64); err == nil {
		return id, nil
	}
	name = strings.TrimSpace(name)
	if name == "" {
		return 0, badUsage("want the number or the plate of a vehicle")
	}
	e, err := r.ask(ctx, http.MethodGet, fmt.Sprintf("vehicles?limit=%d&q=%s", maxCandidates, url.QueryEscape(name)), nil)
	if err != nil {
		return 0, err
	}
	var found []struct {
		ID    int64  `json:"id"`
		Plate string `json:"plate_number"`
	}
	if err := json.Unmarshal(e.Data, &found); err != nil {
		return 0, fmt.Errorf("read vehicles: %w", err)
	}
	var exact []int64
	var all, same []string
	for _, v := range found {
		candidate := fmt.Sprintf("%d (%s)", v.ID, v.Plate)
		if all = append(all, candidate); strings.EqualFold(v.Plate, name) {
			exact, same = append(exact, v.ID), append(same, candidate)
		}
	}
	switch {
	case len(exact) == 1:
		return exact[0], nil
	case len(exact) > 1:
		return 0, badUsage("several vehicles have the plate %q: %s; give the number", name, strings.Join(same, ", "))
	case len(found) > 0:
		return 0, badUsage("no vehicle has the plate %q; similar: %s", name, strings.Join(all[:min(len(all), 10)], ", "))
	}
	return 0, refused("there is no vehicle with the plate %q", name)
}
