package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/telematics"
)

const (
	tokenIssuer   = "motorpool-dev"
	tokenAudience = "motorpool"
	tokenLifetime = 30 * 24 * time.Hour
	readyWithin   = 30 * time.Second
)

// announce waits until the world is ready, and then says how to use it.
func (w *world) announce(ctx context.Context, s servers, l app.Listeners, demo *simulator.Fleet) error {
	base, internal := "http://"+l.Public.Addr().String(), "http://"+l.Internal.Addr().String()
	env := []variable{
		{"BASE_URL", base},
		{"INTERNAL_URL", internal},
		{"MQTT_URL", s.mqtt.UnitsURL()},
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
			return err
		}
		env = append(env, variable{t.name, token})
	}
	if err := await(ctx, internal+"/readyz", demo); err != nil {
		return err
	}
	if err := writeFiles(w.Dir, w.fleet.logins(w.secrets.units), env); err != nil {
		return err
	}
	w.greet(base, s.mqtt.UnitsURL())
	return nil
}

// await asks until the service is ready and the cars are on the air.
func await(ctx context.Context, url string, demo *simulator.Fleet) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	for !ready(request) || !onAir(demo) {
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("not ready after %v; see the log above, and %s: %w", readyWithin, url, ctx.Err())
		}
	}
	return nil
}

func ready(request *http.Request) bool {
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func onAir(demo *simulator.Fleet) bool {
	for _, car := range demo.Cars() {
		if !car.Connected() && !car.Gone() {
			return false
		}
	}
	return true
}

func (w *world) greet(base, units string) {
	env := filepath.Join(w.Dir, envFile)
	var fleet strings.Builder
	for _, v := range w.fleet.record.Vehicles {
		what := "not simulated: connect a unit of your own (" + filepath.Join(w.Dir, unitsFile) + ")"
		if profile, ok := simulator.Demo(v.ID); ok && w.fleet.simulates(v.ID) {
			what = profile.Name
		}
		fmt.Fprintf(&fleet, "  %3d  %-24s %s\n", v.ID, v.Brand+" "+v.Model, what)
	}
	fmt.Fprintf(w.out, `
Motorpool is ready after %.1f s.

  API     %s   (browse it: %s/docs)
  MQTT    %s   (units)

  vehicle
%s
Paste into another terminal, in this folder:

  source %s
  curl -X POST $BASE_URL/api/v1/admin/vehicles/1/control/lock -H "Authorization: Bearer $ADMIN_TOKEN"
  curl $BASE_URL/api/v1/admin/vehicles/1/status -H "Authorization: Bearer $ADMIN_TOKEN"
  curl "$BASE_URL/api/v1/admin/activity?limit=5" -H "Authorization: Bearer $ADMIN_TOKEN"

Ctrl-C stops everything; %s keeps the data.

`, time.Since(w.started).Seconds(), base, base, units, fleet.String(), env, w.Dir)
}
