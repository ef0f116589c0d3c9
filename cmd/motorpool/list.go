package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// list prints a list of the service.
func (r remote) list(ctx context.Context, path string, columns []column) error {
	e, err := r.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return r.show(e, columns)
}

// listing has the flags that lists share.
type listing struct {
	remote
	Limit  int    `env:"-" default:"50" placeholder:"N" help:"How many to list at most, 1 to 200."`
	Cursor string `env:"-" placeholder:"CURSOR" help:"Cursor of the page to list (default: the newest)."`
}

func (l listing) query() url.Values {
	query := url.Values{"limit": {strconv.Itoa(l.Limit)}}
	set(query, "cursor", l.Cursor)
	return query
}

func set(query url.Values, name, value string) {
	if value != "" {
		query.Set(name, value)
	}
}

// setVehicle resolves a number or a plate, where there is one.
func (l listing) setVehicle(ctx context.Context, query url.Values, name string) error {
	if name == "" {
		return nil
	}
	id, err := l.vehicleID(ctx, name)
	query.Set("vehicle_id", strconv.FormatInt(id, 10))
	return err
}

func (l listing) print(ctx context.Context, list string, query url.Values, columns []column) error {
	return l.list(ctx, list+"?"+query.Encode(), columns)
}

type vehicleList struct {
	listing
	Search       string `arg:"" optional:"" help:"Part of the plate, brand, model or unit (default all)."`
	Status       string `env:"-" placeholder:"STATUS" help:"Only of this status, such as available (default any)."`
	Connectivity string `env:"-" placeholder:"STATUS" help:"Only of this connectivity: online, standby or offline (default any)."`
	Agency       string `env:"-" placeholder:"N" help:"Only of this agency (default all)."`
}

func (v vehicleList) Run(ctx context.Context) error {
	query := v.query()
	set(query, "q", v.Search)
	set(query, "status", v.Status)
	set(query, "connectivity", v.Connectivity)
	set(query, "agency_id", v.Agency)
	return v.print(ctx, "vehicles", query, []column{
		"ID id", "PLATE plate_number", "AGENCY agency_id", "BRAND brand", "MODEL model", "STATUS status",
		"CONNECTIVITY connectivity.status", "LAST SEEN connectivity.last_seen", "LOCKED telemetry.is_locked",
	})
}

type bookings struct {
	listing
	Vehicle string `env:"-" placeholder:"N|PLATE" help:"Only of this vehicle (default any)."`
	Client  string `env:"-" placeholder:"SUB" help:"Only of this client (default any)."`
	Status  string `env:"-" placeholder:"STATUS" help:"Only of this status, such as active (default any)."`
	Agency  string `env:"-" placeholder:"N" help:"Only of this agency (default all)."`
	From    string `env:"-" placeholder:"TIME" help:"${activity_from}."`
	To      string `env:"-" placeholder:"TIME" help:"To before this day or instant (default the end)."`
}

func (b bookings) Run(ctx context.Context) error {
	query := b.query()
	if err := b.setVehicle(ctx, query, b.Vehicle); err != nil {
		return err
	}
	set(query, "client", b.Client)
	set(query, "status", b.Status)
	set(query, "agency_id", b.Agency)
	for _, limit := range [...]struct{ name, text string }{{"from", b.From}, {"to", b.To}} {
		at, err := parseInstant("--"+limit.name, limit.text)
		if err != nil {
			return err
		}
		if !at.IsZero() {
			query.Set(limit.name, at.Format(time.RFC3339))
		}
	}
	return b.print(ctx, "bookings", query, []column{
		"ID id", "REFERENCE reference", "STATUS status", "CLIENT client", "VEHICLE vehicle.id",
		"PLATE vehicle.plate_number", "START start_date", "END end_date", "PRICE pricing.rental_total",
		"CURRENCY pricing.currency", "PAYMENT payment.status",
	})
}

type units struct {
	Unknown unknownUnits `cmd:"" help:"List unassigned units, most recently discovered first."`
}

type unknownUnits struct {
	remote
	Limit int `env:"-" default:"50" placeholder:"N" help:"How many to list at most, 1 to 200."`
}

func (u unknownUnits) Run(ctx context.Context) error {
	return u.list(ctx, fmt.Sprintf("units/unknown?limit=%d", u.Limit), []column{
		"UNIT unit", "FIRST SEEN first_seen", "LAST SEEN last_seen", "MESSAGES messages",
	})
}
