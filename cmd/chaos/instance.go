package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// instance is a process of the service. Between it and everything else lies a line.
type instance struct {
	*devstack.Program
	name     string
	callers  string // URL of the API, by the callers' line
	internal string // URL of readiness, without a line
}

func (w *world) startInstance(ctx context.Context, i int) (*instance, error) {
	var servers [3]string
	for k, l := range []struct{ name, to string }{
		{lineOf(i, mosquittoServer), w.mosquitto.ServiceURL()},
		{lineOf(i, redisServer), w.redis.URL()},
		{lineOf(i, postgresServer), w.postgres.URL()},
	} {
		var err error
		if servers[k], err = w.lines.lay(l.name, l.to); err != nil {
			return nil, err
		}
	}
	var n *instance
	var err error
	for range portClashes {
		if n, err = w.startOn(ctx, i, servers); err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	w.later(n.Close)
	n.callers, err = w.lines.lay(callersLine(i), n.callers)
	return n, err
}

// portClashes is how often other ports are tried, when somebody took those that were free a moment ago.
const portClashes = 5

func (w *world) startOn(ctx context.Context, i int, servers [3]string) (*instance, error) {
	var address [2]string
	for n := range address {
		port, err := devstack.FreePort()
		if err != nil {
			return nil, err
		}
		address[n] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	environment := append(os.Environ(),
		"MOTORPOOL_HTTP="+address[0], "MOTORPOOL_INTERNAL="+address[1],
		"MOTORPOOL_MQTT_URL="+servers[0], "MOTORPOOL_REDIS_URL="+servers[1], "MOTORPOOL_DATABASE_URL="+servers[2],
		"MOTORPOOL_MQTT_USERNAME="+mosquitto.ServiceUser, "MOTORPOOL_MQTT_PASSWORD="+servicePassword,
		"MOTORPOOL_SIGNING_KEYS="+w.path("signing.jwks"), "MOTORPOOL_TOKEN_KEYS="+w.path("tokens.jwks"),
		"MOTORPOOL_TOKEN_ISSUER="+tokenIssuer, "MOTORPOOL_TOKEN_AUDIENCE="+tokenIssuer,
		"MOTORPOOL_BUDGET="+budget.String(),
		// Limits would refuse the load, and are not what is tested.
		"MOTORPOOL_VEHICLE_RATE=0", "MOTORPOOL_ADMIN_RATE=0",
	)
	n := &instance{name: instanceName(i), internal: "http://" + address[1], callers: "http://" + address[0]}
	var err error
	n.Program, err = devstack.StartProgram(ctx, devstack.ProgramConfig{
		Name: n.name, Serving: "serving http=", Logger: w.logFile(fmt.Sprintf("instance-%d", i)),
		Command: func() *exec.Cmd {
			cmd := exec.Command(w.Binary, "serve")
			cmd.Env, cmd.Dir = environment, w.dir
			return cmd
		},
	})
	return n, err
}

var direct = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (n *instance) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.internal+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := direct.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}
