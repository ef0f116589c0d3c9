package world

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/metricstest"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// InstanceConfig configures an instance of the service.
type InstanceConfig struct {
	Name string // Defaults to "instance 0" for the first, and so on

	// The servers that the instance connects to. Default to those of the world.
	MQTTURL, RedisURL, DatabaseURL string

	// Settings are additional ones, as MOTORPOOL_NAME=value. They override those of StartInstance.
	Settings []string
}

// Instance is a process of the service. It can be frozen, killed and restarted, on the same ports.
type Instance struct {
	*devstack.Program
	Name     string
	Public   string // URL of the API
	Internal string // URL of readiness and metrics
	// Reader is held so that the instance's log is not read, and its pipe fills.
	Reader *sync.Mutex
}

// InstanceName is the default name of the nth instance.
func InstanceName(n int) string { return fmt.Sprintf("instance %d", n) }

// portAttempts is how many ports StartInstance tries: another program may take a free one before
// the instance listens.
const portAttempts = 5

// StartInstance starts the program Binary on free ports, and returns when it listens; Ready waits
// until it is ready. Limits are off and unsafe Postgres settings are allowed, unless Settings
// override that.
func (w *World) StartInstance(ctx context.Context, c InstanceConfig) (n *Instance, err error) {
	c.Name = cmp.Or(c.Name, InstanceName(len(w.Running)))
	for range portAttempts {
		if n, err = w.startInstance(ctx, c); err == nil || !strings.Contains(err.Error(), "address already in use") {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	w.Running = append(w.Running, n)
	w.OnClose(n.Close)
	return n, nil
}

func (w *World) startInstance(ctx context.Context, c InstanceConfig) (*Instance, error) {
	var address [2]string
	for n := range address {
		port, err := devstack.FreePort()
		if err != nil {
			return nil, err
		}
		address[n] = fmt.Sprintf("127.0.0.1:%d", port)
	}
	environment := slices.Concat(os.Environ(), []string{
		"MOTORPOOL_MQTT_URL=" + cmp.Or(c.MQTTURL, w.Mosquitto.ServiceURL()),
		"MOTORPOOL_MQTT_USERNAME=" + mosquitto.ServiceUser, "MOTORPOOL_MQTT_PASSWORD=" + w.ServicePassword,
		"MOTORPOOL_REDIS_URL=" + cmp.Or(c.RedisURL, w.Redis.URL()), "MOTORPOOL_DATABASE_URL=" + cmp.Or(c.DatabaseURL, w.Postgres.URL()),
		"MOTORPOOL_HTTP=" + address[0], "MOTORPOOL_INTERNAL=" + address[1],
		"MOTORPOOL_SIGNING_KEYS=" + w.Path(folder.SigningFile), "MOTORPOOL_TOKEN_KEYS=" + w.Path(folder.TokenKeysFile),
		"MOTORPOOL_TOKEN_ISSUER=" + folder.TokenIssuer, "MOTORPOOL_TOKEN_AUDIENCE=" + folder.TokenAudience,
		"MOTORPOOL_AGENCY_SECRETS_KEY=" + w.AgencySecrets,
		"MOTORPOOL_ALLOW_UNSAFE_POSTGRES=true", // the server of a test does not wait for the disk
		"MOTORPOOL_LOG_FORMAT=text",            // Serving and the tests read lines of it
		"MOTORPOOL_HEALTH=", "MOTORPOOL_DRAIN=0s",
		"MOTORPOOL_VEHICLE_RATE=0", "MOTORPOOL_ADMIN_RATE=0", "MOTORPOOL_BULK_RATE=0", "MOTORPOOL_ADMIN_STREAMS=0",
	}, c.Settings)
	reader := &sync.Mutex{}
	program, err := devstack.StartProgram(ctx, devstack.ProgramConfig{
		Name: c.Name, Serving: "serving http=", Logger: slog.New(heldHandler{w.LogFile(c.Name).Handler(), reader}),
		Command: func() *exec.Cmd {
			cmd := exec.Command(w.Binary, "serve")
			cmd.Env, cmd.Dir = environment, w.Dir
			return cmd
		},
	})
	return &Instance{Program: program, Name: c.Name, Public: "http://" + address[0], Internal: "http://" + address[1], Reader: reader}, err
}

// heldHandler handles no record while its mutex is held.
type heldHandler struct {
	slog.Handler
	held *sync.Mutex
}

func (h heldHandler) Handle(ctx context.Context, r slog.Record) error {
	h.held.Lock()
	defer h.held.Unlock()
	return h.Handler.Handle(ctx, r)
}

const readyWithin = time.Minute

// Ready waits until every instance is ready.
func (w *World) Ready(ctx context.Context) error {
	for _, n := range w.Running {
		if err := Eventually(ctx, readyWithin, n.Name+" ready", n.Ready); err != nil {
			return err
		}
	}
	return nil
}

// Callers is the HTTP client of callers. It opens a connection for each call: with keep-alive,
// net/http repeats a request with an Idempotency-Key when its connection breaks, and the caller
// would not notice the first attempt.
var Callers = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

// Request is a request to the API.
type Request struct {
	Method string // Defaults to POST
	URL    string
	Token  string            // of access
	Body   []byte            // JSON. Defaults to none
	Header map[string]string // without those that are empty
}

// Do makes the request and decodes the JSON of its response, for every status. An incomplete
// response is an error.
func (r Request) Do(ctx context.Context, client *http.Client, answer any) (status int, header http.Header, err error) {
	request, err := http.NewRequestWithContext(ctx, cmp.Or(r.Method, http.MethodPost), r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return 0, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+r.Token)
	if len(r.Body) > 0 {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range r.Header {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, nil, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return 0, nil, err
	}
	_, _ = io.Copy(io.Discard, response.Body) // so that the connection is reused
	return response.StatusCode, response.Header, nil
}

// Ready reports whether the instance is ready.
func (n *Instance) Ready(ctx context.Context) bool { return folder.Ready(ctx, n.Internal) }

// Metrics returns the samples of the instance.
func (n *Instance) Metrics(ctx context.Context) (metricstest.Values, error) {
	return metricstest.Read(ctx, folder.Probe, n.Internal+"/metrics")
}

// BuildProgram returns the absolute path of the named program. Without a name it builds the service
// into dir.
func BuildProgram(ctx context.Context, named, dir string, race bool) (string, error) {
	if named != "" {
		return filepath.Abs(named)
	}
	binary := filepath.Join(dir, "motorpool")
	args := []string{"build", "-ldflags=-s -w", "-o", binary}
	if race {
		args = append(args, "-race")
	}
	if output, err := exec.CommandContext(ctx, "go", append(args, "motorpool/cmd/motorpool")...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the service: %w\n%s", err, output)
	}
	return binary, nil
}
