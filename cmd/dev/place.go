package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/mosquitto"
	"motorpool/telematics"
)

const (
	tokenIssuer   = "motorpool-dev"
	tokenAudience = "motorpool"
	tokenLifetime = 30 * 24 * time.Hour
	readyWithin   = 30 * time.Second
	askEvery      = 50 * time.Millisecond
)

// place is where the world is reached, and with which tokens.
type place struct {
	base     string // URL of the API
	internal string // URL of health and readiness
	units    string // URL of the MQTT broker's listener for units
	admin    string // token
	env      []variable
}

func (w *world) place(s servers, l app.Listeners) (place, error) {
	p := place{
		base: "http://" + l.Public.Addr().String(), internal: "http://" + l.Internal.Addr().String(), units: s.mqtt.UnitsURL(),
	}
	p.env = []variable{
		{"BASE_URL", p.base},
		{"INTERNAL_URL", p.internal},
		{"MQTT_URL", p.units},
		{"MQTT_SERVICE_URL", s.mqtt.ServiceURL()},
		{"MQTT_USERNAME", mosquitto.ServiceUser},
		{"MQTT_PASSWORD", w.secrets.service},
	}
	for _, t := range []struct {
		name  string
		actor telematics.Actor
	}{
		{"ADMIN_TOKEN", telematics.Actor{Subject: "admin", Role: telematics.Admin}},
		{"AGENCY_ADMIN_TOKEN", telematics.Actor{Subject: "agency-1-admin", Role: telematics.Admin, Agency: 1}},
		{"CLIENT_TOKEN", telematics.Actor{Subject: "client-1", Role: telematics.Client, Agency: 1}},
	} {
		token, err := app.Grant{Issuer: tokenIssuer, Audience: tokenAudience, Actor: t.actor, Lifetime: tokenLifetime}.Mint(w.secrets.tokens)
		if err != nil {
			return place{}, err
		}
		p.env = append(p.env, variable{t.name, token})
		if t.actor.Role == telematics.Admin && t.actor.Agency == 0 {
			p.admin = token
		}
	}
	return p, nil
}

// await asks until something holds.
func (p place) await(ctx context.Context, what string, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-time.After(askEvery):
		case <-ctx.Done():
			return fmt.Errorf("after %v still not so: %s; see the log above, and %s/readyz: %w", readyWithin, what, p.internal, ctx.Err())
		}
	}
	return nil
}

func (p place) serviceReady(ctx context.Context) bool {
	return p.get(ctx, p.internal+"/readyz", nil)
}

// reporting tells whether all these vehicles are online, with a position.
func (p place) reporting(ctx context.Context, vehicles []telematics.VehicleID) bool {
	var fleet struct {
		Data []struct {
			ID           telematics.VehicleID
			Connectivity struct{ Status telematics.PresenceStatus }
			Location     struct{ Latitude *float64 }
		}
	}
	if !p.get(ctx, p.base+"/api/v1/admin/vehicles?limit=200", &fleet) {
		return false
	}
	for _, v := range fleet.Data {
		if slices.Contains(vehicles, v.ID) && (v.Connectivity.Status != telematics.Online || v.Location.Latitude == nil) {
			return false
		}
	}
	return true
}

// get reports whether the answer is 200 and, where it is wanted, readable.
func (p place) get(ctx context.Context, url string, into any) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	request.Header.Set("Authorization", "Bearer "+p.admin)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return false
	}
	return into == nil || json.NewDecoder(response.Body).Decode(into) == nil
}
