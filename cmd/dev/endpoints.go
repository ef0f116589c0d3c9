package main

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/httpapi/signin"
	"motorpool/internal/app"
	"motorpool/mosquitto"
	"motorpool/store/pg"
	"motorpool/store/redis"
	"motorpool/store/vehicles"
	"motorpool/telematics"
)

const (
	readyWithin   = 30 * time.Second
	signInLinkFor = 365 * 24 * time.Hour // Redis ends with the environment, and the links with it
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
	for _, one := range persons {
		token, err := e.TokenAt(one.level, one.actor, one.scopes...)
		if err != nil {
			return endpoints{}, err
		}
		p.env = append(p.env, variable{one.token, token})
	}
	keys, err := filepath.Abs(e.Path(folder.SigningFile))
	if err != nil {
		return endpoints{}, err
	}
	// For the operator's tool.
	p.env = append(p.env, variable{"MOTORPOOL_URL", p.base}, variable{"MOTORPOOL_TOKEN", p.value("ADMIN_TOKEN")},
		variable{"MOTORPOOL_SIGNING_KEYS", keys}, variable{"MOTORPOOL_DATABASE_URL", s.databaseURL},
		variable{"MOTORPOOL_AGENCY_SECRETS_KEY", e.AgencySecrets}, variable{"MOTORPOOL_CONSOLE_URL", p.base},
		variable{"CONSOLE_PASSWORD", e.ConsolePassword})
	return p, nil
}

// signInLinks adds addresses that sign browsers in to the console, at each level, for as long as
// the environment runs.
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
	for _, one := range persons {
		if one.link == "" {
			continue
		}
		code, err := signIn.Offer(ctx, p.value(one.token), signInLinkFor)
		if err != nil {
			return err
		}
		p.env = append(p.env, variable{one.link, address.JoinPath("auth/once").String() + "?code=" + code})
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
	if err := folder.Eventually(ctx, readyWithin, condition, holds); err != nil {
		return fmt.Errorf("%w; see the log above, and %s/readyz", err, p.internal)
	}
	return nil
}

func (p endpoints) serviceReady(ctx context.Context) bool { return folder.Ready(ctx, p.internal) }

// reporting reports whether all these vehicles are online and have a reported state, but for those
// that have another unit on record.
func reporting(ctx context.Context, postgres *pg.DB, demo []telematics.Vehicle) bool {
	for _, v := range demo {
		twin, err := vehicles.New(postgres).Twin(ctx, v.ID)
		if err != nil || twin.Unit == v.Unit && (twin.Contact.At(time.Now()) != telematics.Online || twin.Snapshot.Empty()) {
			return false
		}
	}
	return true
}
