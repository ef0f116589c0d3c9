package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestMain(m *testing.M) {
	code := m.Run()
	storetest.Stop()
	os.Exit(code)
}

// newDir returns a folder for a world, whose database is removed with it, wherever its data are.
func newDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "dev")
	t.Cleanup(func() {
		postgres, err := devstack.StartPostgres(context.Background(), devstack.PostgresConfig{Dir: filepath.Join(dir, "postgres")})
		if err == nil {
			err = postgres.Discard()
		}
		assert.NoError(t, err, "discard the world's database")
	})
	return dir
}

// onSharedPostgres makes a world use a database of the Postgres that all these tests share.
func onSharedPostgres(t *testing.T) func(*flags) {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	address := app.Secret(storetest.NewDatabase(t))
	return func(f *flags) { f.DatabaseURL = address }
}

// live is a world that runs for a test.
type live struct {
	*testing.T
	dir  string
	env  map[string]string
	out  *bytes.Buffer
	stop func() error
}

// begin starts a world on free ports and waits until it is ready.
func begin(t *testing.T, dir string, change ...func(*flags)) *live {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	f := flags{HTTP: freePort, Internal: freePort, MQTT: freePort, MQTTService: freePort, Dir: dir, LogLevel: "warn"}
	for _, change := range change {
		change(&f)
	}
	fleet, err := demoFleet(f.Without)
	require.NoError(t, err)
	l := &live{T: t, dir: dir, out: &bytes.Buffer{}}
	e := &environment{
		flags: f, fleet: fleet, out: l.out,
		log: slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- e.run(ctx) }()
	l.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	t.Cleanup(func() { require.NoError(t, l.stop()) })
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if l.env = folder.ReadEnv(filepath.Join(dir, envFile)); l.env != nil {
			return l
		}
		if time.Now().After(deadline) {
			require.Late(t, "the world is not ready after 90 s")
		}
		select {
		case err := <-ended:
			ended <- err
			t.Fatalf("the world ended before it was ready: %v", err)
		default:
		}
	}
}

type reply struct {
	status     int
	retryAfter string
	took       time.Duration
	Data       json.RawMessage
	Meta       struct{ Source string }
	Error      struct {
		Code, Outcome string
		RetryAfter    json.Number `json:"retry_after"`
	}
}

// call sends a request that waits for the vehicle as long as one may, since the machine may be
// busy; for vehicle 8, which does not answer, the default of 10 s.
func (l *live) call(method, path, token string) reply {
	wait := 30
	if strings.HasPrefix(path, "vehicles/8/") {
		wait = 0
	}
	return l.callWithin(wait, method, path, token)
}

// callWithin sends a request that waits a number of seconds for the vehicle; 0: the default. It
// repeats the request while a server does not respond in time, so that nothing is sent.
func (l *live) callWithin(wait int, method, path, token string) reply {
	r := l.callOnce(wait, method, path, token)
	for n := 0; n < 10 && (r.Error.Code == "telematics_unavailable" || r.Error.Code == "service_unavailable"); n++ {
		time.Sleep(500 * time.Millisecond)
		r = l.callOnce(wait, method, path, token)
	}
	return r
}

func (l *live) callOnce(wait int, method, path, token string) reply {
	body := ""
	if strings.HasSuffix(path, "/control/attention") {
		body = `{"signal":"both","duration_ms":200}`
	}
	request, err := http.NewRequest(method, l.env["BASE_URL"]+"/api/v1/admin/"+path, strings.NewReader(body))
	if err != nil {
		l.Error(err)
		return reply{}
	}
	request.Header.Set("Authorization", "Bearer "+l.env[token])
	request.Header.Set("Content-Type", "application/json")
	if wait > 0 {
		request.Header.Set("Prefer", fmt.Sprintf("wait=%d", wait))
	}
	start := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		l.Error(err)
		return reply{}
	}
	defer response.Body.Close()
	r := reply{status: response.StatusCode}
	assert.NoError(l, json.NewDecoder(response.Body).Decode(&r))
	r.took, r.retryAfter = time.Since(start), r.Error.RetryAfter.String()
	return r
}

// lesson is what a car of the demo fleet shows for an action.
type lesson struct {
	status        int
	code, outcome string
	retryAfter    string
	atLeast       time.Duration
}

var (
	done         = lesson{status: 200}
	slowly       = lesson{status: 200, atLeast: 6 * time.Second}
	noisily      = lesson{status: 200}
	notSupported = lesson{status: 409, code: "command_not_supported", outcome: "not_executed", retryAfter: "3600"}
	away         = lesson{status: 503, code: "vehicle_offline", outcome: "not_executed", retryAfter: "30"}
	driving      = lesson{status: 409, code: "vehicle_state_conflict", outcome: "not_executed", retryAfter: "30"}
	unanswered   = lesson{status: 504, code: "command_timeout", outcome: "unknown", retryAfter: "10", atLeast: 10 * time.Second}
	broken       = lesson{status: 502, code: "command_failed", outcome: "failed", retryAfter: "10"}
)

// usually lists what each car shows; lessonOf has the exceptions.
var usually = map[telematics.VehicleID]lesson{
	1: done, 2: done, 3: done, 4: done, 5: away, 6: done, 7: slowly, 8: unanswered, 9: noisily, 10: broken,
}

func lessonOf(v telematics.VehicleID, a telematics.Action) lesson {
	switch {
	case a == telematics.OpenTopCase && v != 3, a == telematics.AttentionSignal && v == 4:
		return notSupported
	case v == 6 && (a.Immobilizes() || a.Opens()):
		return driving
	}
	return usually[v]
}

// One world serves these in turn: each leaves the vehicles to the next as it found them.
func TestDemo_VehiclesBehaveAsDocumented(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	l := begin(t, dir, onSharedPostgres(t))
	if _, err := os.Stat(filepath.Join(dir, "postgres")); !os.IsNotExist(err) {
		t.Error("the world uses a given Postgres, and another was created in its folder")
	}
	l.hasTheStateOfEachCar()
	t.Run("single vehicles", func(t *testing.T) {
		for name, test := range map[string]func(*live){
			"status": (*live).showsEachPowertrain, "refresh": (*live).teachesRefreshes,
			"OVMS module": (*live).reportsAndLocksTheOVMSModule, "Teltonika unit": (*live).reportsTheTeltonikaUnit,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); test(l.in(t)) })
		}
	})
	t.Run("table of README.md", func(t *testing.T) { l.in(t).answersAsTheReadmeSays() })
	if locked := l.van().Telemetry.Locked; locked == nil || !*locked {
		t.Error("the van was locked, and its status does not say so")
	}
	t.Run("every action", func(t *testing.T) { l.in(t).teachesEveryAction() })
	t.Run("keys", func(t *testing.T) { l.in(t).rotatesKeysWhileRunning() })
}

// in returns the world for a subtest.
func (l *live) in(t *testing.T) *live {
	in := *l
	in.T = t
	return &in
}

func (l *live) hasTheStateOfEachCar() {
	l.Helper()
	for v := range usually {
		if v == 7 { // its radio also delays reports
			continue
		}
		var status struct {
			Location  struct{ Address *string }
			Telemetry struct {
				Mileage *float64 `json:"mileage_km"`
			}
		}
		r := l.call(http.MethodGet, fmt.Sprintf("vehicles/%d/status", v), "ADMIN_TOKEN")
		if err := json.Unmarshal(r.Data, &status); err != nil || status.Telemetry.Mileage == nil {
			l.Errorf("vehicle %d has no state when the world is ready: %s %v", v, r.Data, err)
		}
		atStation := map[telematics.VehicleID]string{
			1: "Arnulfstraße 1, 80335 München", 2: "Leopoldstraße 82, 80802 München",
			4: "Orleansplatz 11, 81667 München",
		}
		switch want, near := atStation[v]; {
		case near && (status.Location.Address == nil || *status.Location.Address != want),
			!near && v != 6 && status.Location.Address != nil:
			l.Errorf("vehicle %d has a wrong address: %s", v, r.Data)
		}
	}
}

func (l *live) teachesEveryAction() {
	type cell struct {
		telematics.VehicleID
		telematics.Action
	}
	var mu sync.Mutex
	cells := map[cell]reply{}
	var callers sync.WaitGroup
	for v := range usually {
		lanes := map[telematics.Lane][]telematics.Action{}
		for _, a := range telematics.ControlActions {
			lanes[a.Lane()] = append(lanes[a.Lane()], a)
		}
		for _, actions := range lanes {
			callers.Go(func() {
				for _, a := range actions {
					r := l.call(http.MethodPost, fmt.Sprintf("vehicles/%d/control/%s", v, a), "ADMIN_TOKEN")
					mu.Lock()
					cells[cell{v, a}] = r
					mu.Unlock()
				}
			})
		}
	}
	callers.Wait()
	for v := telematics.VehicleID(1); v <= 10; v++ {
		for _, a := range telematics.ControlActions {
			got, want := cells[cell{v, a}], lessonOf(v, a)
			l.Logf(
				"| %d | %s | %d | %s | %s | %s | %d ms |", v, a, got.status, got.Error.Code, got.Error.Outcome,
				got.retryAfter, got.took.Milliseconds(),
			)
			if got.status != want.status || got.Error.Code != want.code || got.Error.Outcome != want.outcome ||
				got.retryAfter != want.retryAfter ||
				got.took < want.atLeast {
				l.Errorf(
					"vehicle %d, %s: %d %+v, Retry-After %q after %v; want %+v", v, a, got.status, got.Error,
					got.retryAfter, got.took, want,
				)
			}
		}
	}
	if r := l.call(http.MethodGet, "vehicles/8/commands?limit=100", "ADMIN_TOKEN"); !strings.Contains(string(r.Data), `"late":true`) {
		l.Errorf("want a command of vehicle 8 that a late answer settled: %s", r.Data)
	}
	if r := l.call(http.MethodPost, "vehicles/9/control/lock", "AGENCY_ADMIN_TOKEN"); r.status != 404 {
		l.Errorf("an administrator of agency 1 locks a vehicle of agency 2: %d, want 404", r.status)
	}
	assert.Equal(l, l.call(http.MethodGet, "vehicles/1/status", "CLIENT_TOKEN").status, 403, "a client reads a path for administrators")
}

func TestListenOn_RequestedAddressMustBeFree(t *testing.T) {
	taken, err := net.Listen("tcp", freePort)
	require.NoError(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	log := slog.New(slog.DiscardHandler)
	if _, err := listenOn(log, "http", address, defaultHTTP, listenTCP); err == nil ||
		err.Error() != "--http: "+address+" is in use by another program" {
		t.Errorf("a requested address that is in use: %v", err)
	}
	var said bytes.Buffer
	other, err := listenOn(slog.New(slog.NewTextHandler(&said, nil)), "http", "", address, listenTCP)
	require.NoError(t, err, "a default address that is in use was not replaced")
	defer other.Close()
	if !strings.Contains(said.String(), address) {
		t.Errorf("the log does not name the replaced default address: %s", &said)
	}
}

func TestDemoFleet_RefusesToLeaveOutAnUnknownVehicle(t *testing.T) {
	if _, err := demoFleet([]telematics.VehicleID{13}); err == nil {
		t.Error("leaving out vehicle 13 of twelve returned no error")
	}
}
