package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/mosquitto"
	"motorpool/store"
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
	env      []variable
}

// reachable returns how this machine reaches a listener, which may listen everywhere.
func reachable(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return "http://" + a.String()
}

func (w *world) place(s servers, l app.Listeners) (place, error) {
	p := place{
		base: reachable(l.Public.Addr()), internal: reachable(l.Internal.Addr()), units: s.mqtt.UnitsURL(),
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
		scope string
	}{
		{"ADMIN_TOKEN", telematics.Actor{Subject: "admin", Role: telematics.Admin}, strings.Join([]string{app.AllAgencies, app.Halt, app.AgencyKeys}, " ")},
		{"AGENCY_ADMIN_TOKEN", telematics.Actor{Subject: "agency-1-admin", Role: telematics.Admin, Agency: 1}, ""},
		{"CLIENT_TOKEN", firstClient, ""},
		{"OTHER_CLIENT_TOKEN", otherClient, ""},
		{"OTHER_AGENCY_CLIENT_TOKEN", agency2sOwn, ""},
	} {
		token, err := app.Grant{Issuer: tokenIssuer, Audience: tokenAudience, Actor: t.actor, Scope: t.scope, Lifetime: tokenLifetime}.Mint(w.secrets.tokens)
		if err != nil {
			return place{}, err
		}
		p.env = append(p.env, variable{t.name, token})
	}
	signing, err := filepath.Abs(filepath.Join(w.Dir, signingFile))
	if err != nil {
		return place{}, err
	}
	// For the operator's tool.
	p.env = append(p.env, variable{"MOTORPOOL_URL", p.base}, variable{"MOTORPOOL_TOKEN", p.value("ADMIN_TOKEN")},
		variable{"MOTORPOOL_SIGNING_KEYS", signing}, variable{"MOTORPOOL_DATABASE_URL", s.databaseURL},
		variable{"MOTORPOOL_AGENCY_SECRETS_KEY", w.secrets.agencies})
	return p, nil
}

func (p place) value(name string) string {
	for _, v := range p.env {
		if v.name == name {
			return v.value
		}
	}
	return ""
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
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.internal+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

// reporting tells whether all these vehicles are online, with a state.
func reporting(ctx context.Context, postgres *store.Postgres, vehicles []telematics.VehicleID) bool {
	for _, id := range vehicles {
		twin, err := postgres.Twin(ctx, id)
		if err != nil || twin.Contact.At(time.Now()) != telematics.Online || len(twin.Snapshot) == 0 {
			return false
		}
	}
	return true
}
