// Package service runs the service as a separate process, for programs that break it or
// measure it: what they do themselves must not happen in its process.
package service

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"motorpool/metrics"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// Config is an instance of the service.
type Config struct {
	Name   string
	Binary string // the program
	Dir    string // its working folder

	MQTTURL, MQTTPassword  string
	RedisURL, DatabaseURL  string
	SigningKeys, TokenKeys string   // files
	TokenIssuer            string   // the audience, too
	Settings               []string // further ones, as MOTORPOOL_NAME=value

	Logger *slog.Logger // Defaults to silence
}

// Instance is a running one. It can be frozen, killed and restarted.
type Instance struct {
	*devstack.Program
	Name     string
	Public   string // URL of the API
	Internal string // URL of readiness and metrics
}

// portClashes is how often other ports are tried, when another program took those that were free a moment ago.
const portClashes = 5

// Start returns when the instance listens; Ready tells when it can work.
func Start(ctx context.Context, c Config) (n *Instance, err error) {
	for range portClashes {
		if n, err = startOn(ctx, c); err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	return n, err
}

func startOn(ctx context.Context, c Config) (*Instance, error) {
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
		"MOTORPOOL_MQTT_URL="+c.MQTTURL, "MOTORPOOL_REDIS_URL="+c.RedisURL, "MOTORPOOL_DATABASE_URL="+c.DatabaseURL,
		"MOTORPOOL_MQTT_USERNAME="+mosquitto.ServiceUser, "MOTORPOOL_MQTT_PASSWORD="+c.MQTTPassword,
		"MOTORPOOL_SIGNING_KEYS="+c.SigningKeys, "MOTORPOOL_TOKEN_KEYS="+c.TokenKeys,
		"MOTORPOOL_TOKEN_ISSUER="+c.TokenIssuer, "MOTORPOOL_TOKEN_AUDIENCE="+c.TokenIssuer,
		"MOTORPOOL_ALLOW_UNSAFE_POSTGRES=true", // the servers of these programs wait for no disk
		"MOTORPOOL_HEALTH=", "MOTORPOOL_DRAIN=0s",
		// Limits would refuse the load, and are not what is tested.
		"MOTORPOOL_VEHICLE_RATE=0", "MOTORPOOL_ADMIN_RATE=0", "MOTORPOOL_BULK_RATE=0", "MOTORPOOL_ADMIN_STREAMS=0",
	)
	environment = append(environment, c.Settings...)
	n := &Instance{Name: c.Name, Internal: "http://" + address[1], Public: "http://" + address[0]}
	var err error
	n.Program, err = devstack.StartProgram(ctx, devstack.ProgramConfig{
		Name: c.Name, Serving: "serving http=", Logger: c.Logger,
		Command: func() *exec.Cmd {
			cmd := exec.Command(c.Binary, "serve")
			cmd.Env, cmd.Dir = environment, c.Dir
			return cmd
		},
	})
	return n, err
}

// Direct asks an instance's internal listener: each call on a separate connection, which no fault outlives.
var Direct = &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

// Ready reports whether the instance says that it is.
func (n *Instance) Ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, n.Internal+"/readyz", nil)
	if err != nil {
		return false
	}
	response, err := Direct.Do(request)
	if err != nil {
		return false
	}
	return response.Body.Close() == nil && response.StatusCode == http.StatusOK
}

// Metrics returns the samples of the instance.
func (n *Instance) Metrics(ctx context.Context) (metrics.Values, error) {
	return metrics.Read(ctx, Direct, n.Internal+"/metrics")
}

// Program returns the path of the program to run: the one that is named, or one that is built into dir, with build tags.
func Program(ctx context.Context, named, dir string, race bool, tags ...string) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	binary := filepath.Join(dir, "motorpool")
	args := []string{"build", "-o", binary}
	if race {
		args = append(args, "-race")
	}
	if len(tags) > 0 {
		args = append(args, "-tags", strings.Join(tags, ","))
	}
	if said, err := exec.CommandContext(ctx, "go", append(args, "motorpool/cmd/motorpool")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the service: %w\n%s", err, said)
	}
	return binary, nil
}

// HasTag reports whether a program was built with a build tag.
func HasTag(binary, tag string) bool {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-tags" && slices.Contains(strings.Split(s.Value, ","), tag)
	})
}

// Poll is between two looks.
const Poll = 50 * time.Millisecond

// Eventually waits for something, with a bound.
func Eventually(ctx context.Context, within time.Duration, what string, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s: %w", within, what, ctx.Err())
		case <-time.After(Poll):
		}
	}
	return nil
}
