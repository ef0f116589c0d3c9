package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"motorpool/cmd/internal/app"
	"motorpool/cmd/internal/world"
	"motorpool/httpapi/auth"
	"motorpool/httpapi/signin"
	"motorpool/mosquitto"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

const (
	readyWithin   = 30 * time.Second
	signInLinkFor = 24 * time.Hour
)

// endpoints are the addresses of the environment, and the variables of its env file.
type endpoints struct {
	base     string // URL of the API
	internal string // URL of health and readiness
	units    string // URL of the MQTT broker's listener for units
	env      []variable
}

// reachable returns a URL with which this machine reaches a listener, also one on all addresses.
func reachable(a net.Addr) string {
	if tcp, ok := a.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return fmt.Sprintf("http://127.0.0.1:%d", tcp.Port)
	}
	return "http://" + a.String()
}

func (e *environment) endpoints(s servers, l app.Listeners) (endpoints, error) {
	p := endpoints{
		base: reachable(l.Public.Addr()), internal: reachable(l.Internal.Addr()), units: s.mqtt.UnitsURL(),
	}
	p.env = []variable{
		{"BASE_URL", p.base},
		{"INTERNAL_URL", p.internal},
		{"MQTT_URL", p.units},
		{"MQTT_SERVICE_URL", s.mqtt.ServiceURL()},
		{"MQTT_USERNAME", mosquitto.ServiceUser},
		{"MQTT_PASSWORD", e.ServicePassword},
	}
	for _, t := range []struct {
		name   string
		level  auth.Level
		actor  telematics.Actor
		scopes []string
	}{
		{"ADMIN_TOKEN", auth.Administrator, telematics.Actor{Subject: "admin", Role: telematics.Admin}, []string{auth.ScopeAllAgencies, auth.ScopeHalt, auth.ScopeAgencyKeys}},
		{"AGENCY_ADMIN_TOKEN", auth.Administrator, telematics.Actor{Subject: "agency-1-admin", Role: telematics.Admin, Agency: 1}, nil},
		{"OPERATOR_TOKEN", auth.Operator, telematics.Actor{Subject: "operator", Role: telematics.Admin}, []string{auth.ScopeAllAgencies}},
		{"VIEWER_TOKEN", auth.Viewer, telematics.Actor{Subject: "viewer", Role: telematics.Admin}, []string{auth.ScopeAllAgencies}},
		{"CLIENT_TOKEN", 0, firstClient, nil},
		{"OTHER_CLIENT_TOKEN", 0, otherClient, nil},
		{"OTHER_AGENCY_CLIENT_TOKEN", 0, agency2sOwn, nil},
	} {
		token, err := e.TokenAt(t.level, t.actor, t.scopes...)
		if err != nil {
			return endpoints{}, err
		}
		p.env = append(p.env, variable{t.name, token})
	}
	keys, err := filepath.Abs(e.Path(world.SigningFile))
	if err != nil {
		return endpoints{}, err
	}
	// For the operator's tool.
	p.env = append(p.env, variable{"MOTORPOOL_URL", p.base}, variable{"MOTORPOOL_TOKEN", p.value("ADMIN_TOKEN")},
		variable{"MOTORPOOL_SIGNING_KEYS", keys}, variable{"MOTORPOOL_DATABASE_URL", s.databaseURL},
		variable{"MOTORPOOL_AGENCY_SECRETS_KEY", e.AgencySecrets})
	return p, nil
}

// signInLinks adds addresses that sign a browser in to the console once, at each level.
func (p *endpoints) signInLinks(ctx context.Context, redisURL string) error {
	cache, err := redis.New(redis.Config{URL: redisURL})
	if err != nil {
		return err
	}
	defer cache.Close()
	address, err := url.Parse(p.base)
	if err != nil {
		return err
	}
	signIn, err := signin.New(signin.Config{Store: redis.NewSessions(cache), URL: address})
	if err != nil {
		return err
	}
	for _, link := range []struct{ name, token string }{
		{"CONSOLE_URL", "ADMIN_TOKEN"}, {"CONSOLE_URL_AGENCY", "AGENCY_ADMIN_TOKEN"}, {"CONSOLE_URL_OPERATOR", "OPERATOR_TOKEN"}, {"CONSOLE_URL_VIEWER", "VIEWER_TOKEN"},
	} {
		code, err := signIn.Offer(ctx, p.value(link.token), signInLinkFor)
		if err != nil {
			return err
		}
		p.env = append(p.env, variable{link.name, address.JoinPath("auth/once").String() + "?code=" + code})
	}
	return nil
}

func (p endpoints) value(name string) string {
	for _, v := range p.env {
		if v.name == name {
			return v.value
		}
	}
	return ""
}

// await waits until a condition holds.
func (p endpoints) await(ctx context.Context, condition string, holds func(context.Context) bool) error {
	if err := world.Eventually(ctx, readyWithin, condition, holds); err != nil {
		return fmt.Errorf("%w; see the log above, and %s/readyz", err, p.internal)
	}
	return nil
}

func (p endpoints) serviceReady(ctx context.Context) bool { return world.Ready(ctx, p.internal) }

// reporting reports whether all these vehicles are online and have a reported state.
func reporting(ctx context.Context, postgres *pg.DB, ids []telematics.VehicleID) bool {
	for _, id := range ids {
		twin, err := vehicles.New(postgres).Twin(ctx, id)
		if err != nil || twin.Contact.At(time.Now()) != telematics.Online || len(twin.Snapshot) == 0 {
			return false
		}
	}
	return true
}
