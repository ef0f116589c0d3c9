package service_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/internal/logger"
	"motorpool/internal/metricstest"
	"motorpool/internal/require"
	"motorpool/lab/world"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

const (
	servicePassword = "service-secret"
	unitSecret      = "unit-secret"
)

// stack has the servers of an installation, its fleet in the database, and any number of instances
// of the service and of simulated cars.
type stack struct {
	*testing.T
	dir      string
	log      *slog.Logger
	fleet    vehicles.FleetFile
	signing  signing.Key
	tokens   signing.Key
	database string         // URL, as the owner of the tables
	owner    *pg.DB         // connected to it
	address  string         // URL, as the role of the service
	lines    *logger.Writer // counts dropped lines of the log
	redisURL string
	units    string        // URL of the MQTT broker's listener for units
	service  string        // URL of the broker's listener for the service
	interval time.Duration // between reports of a car; zero: that of the simulator
	http     *http.Client  // client of callers; nil: http.DefaultClient

	// The fields below are set only with real servers.
	redis     *devstack.Redis
	mosquitto *devstack.Mosquitto

	postgres *devstack.Postgres // only of a frail stack

	inUse *world.InUse // secrets that the log must not have
}

// startStack returns a stack with the real servers, or with the embedded ones where those are not
// installed. Most tests of this package run concurrently, since they mostly wait; those that
// measure time or load the machine run before them.
func startStack(t *testing.T, vehicles int) *stack {
	t.Helper()
	if devstack.Available(devstack.MosquittoServer) != nil || devstack.Available(devstack.RedisServer) != nil {
		return embeddedStack(t, vehicles)
	}
	return realStack(t, vehicles)
}

// newDatabase returns the address of a separate database with the schema, on a server that the test
// must not stop.
func newDatabase(t *testing.T) string {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	address := storetest.NewDatabase(t)
	t.Cleanup(func() { storetest.Drop(t, address) })
	return address
}

func newStack(t *testing.T, vehicles int, database string) *stack {
	t.Helper()
	var logged logBuffer
	s := &stack{
		T: t, inUse: new(world.InUse), dir: t.TempDir(), database: database, owner: storetest.OpenAsOwner(t, database),
		log: slog.New(slog.NewTextHandler(io.MultiWriter(&logged, t.Output()), &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
	s.lines = logger.NewWriter(io.Discard)
	t.Cleanup(s.lines.Close)
	t.Cleanup(func() { // runs last, when everything has stopped
		leaks, err := s.inUse.Search("log", []byte(logged.String()))
		if err != nil || len(leaks) > 0 {
			t.Errorf("secrets in the log: %v, %v", leaks, err)
		}
	})
	s.fleet = testFleet(vehicles)
	s.signing, s.tokens = s.newKey("signing.jwks", false), s.newKey("tokens.jwks", true)
	s.inUse.AddKeys("private key", s.signing, s.tokens)
	s.inUse.AddURL("password of postgres", database)
	for name, secret := range map[string]string{"password of the service": servicePassword, "secret of units": unitSecret} {
		s.inUse.Add(name, secret)
	}
	for _, v := range s.fleet.Vehicles {
		s.inUse.Add("password of "+string(v.Unit), mosquitto.UnitPassword(unitSecret, string(v.Unit)))
	}
	s.record()
	s.address = s.asRole()
	return s
}

func embeddedStack(t *testing.T, vehicles int) *stack {
	t.Helper()
	s := newStack(t, vehicles, newDatabase(t))
	redis, err := devstack.StartMiniredis("127.0.0.1:0")
	s.must(err)
	t.Cleanup(func() { _ = redis.Close() })
	server, err := devstack.StartMQTT(devstack.MQTTConfig{
		ServicePassword: servicePassword,
		UnitPassword:    func(user string) (string, bool) { return mosquitto.UnitPassword(unitSecret, user), true },
	})
	s.must(err)
	t.Cleanup(func() { _ = server.Close() })
	s.redisURL, s.units, s.service = redis.URL(), server.UnitsURL(), server.ServiceURL()
	return s
}

func realStack(t *testing.T, vehicles int) *stack {
	t.Helper()
	return startReal(newStack(t, vehicles, newDatabase(t)))
}

// frailStack is a real stack with a separate Postgres, which the test can kill and pause like the
// other servers.
func frailStack(t *testing.T, vehicles int) *stack {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	postgres := storetest.StartPostgres(t, false)
	s := newStack(t, vehicles, postgres.URL())
	s.postgres = postgres.Postgres
	return startReal(s)
}

func startReal(s *stack) *stack {
	s.Helper()
	devstack.NeedServer(s, devstack.MosquittoServer)
	devstack.NeedServer(s, devstack.RedisServer)
	passwords := map[string]string{}
	for _, v := range s.fleet.Vehicles {
		passwords[string(v.Unit)] = mosquitto.UnitPassword(unitSecret, string(v.Unit))
	}
	var err error
	s.redis, err = devstack.StartRedis(filepath.Join(s.dir, "redis"), nil)
	s.must(err)
	s.Cleanup(func() { _ = s.redis.Close() })
	s.mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: filepath.Join(s.dir, "mosquitto"), Units: passwords, ServicePassword: servicePassword,
	})
	s.must(err)
	s.Cleanup(func() { _ = s.mosquitto.Close() })
	s.redisURL, s.units, s.service = s.redis.URL(), s.mosquitto.UnitsURL(), s.mosquitto.ServiceURL()
	return s
}

func (s *stack) must(err error) {
	s.Helper()
	require.NoError(s, err)
}

// testFleet returns vehicles with all actions; those with an odd number belong to agency 1, the
// others to agency 2.
func testFleet(n int) vehicles.FleetFile {
	f := vehicles.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "ONE", Name: "One"}, {ID: 2, Code: "TWO", Name: "Two"}}}
	for i := range n {
		f.Vehicles = append(f.Vehicles, telematics.Vehicle{
			ID: telematics.VehicleID(i + 1), AgencyID: telematics.AgencyID(i%2 + 1), Unit: telematics.Unit(fmt.Sprintf("car-%d", i+1)),
			Status: telematics.Available, Powertrain: telematics.Combustion, Plate: fmt.Sprintf("M-OT %d", i+1),
			Actions: telematics.ControlActions,
		})
	}
	return f
}

func (s *stack) newKey(name string, public bool) signing.Key {
	s.Helper()
	key, err := signing.NewKey()
	s.must(err)
	jwks, err := signing.Keychain{{Key: key, Activated: time.Now()}}.Encode()
	if public {
		jwks, err = signing.EncodeKeyring(key.Keyring())
	}
	s.must(err)
	s.must(os.WriteFile(filepath.Join(s.dir, name), jwks, 0o600))
	return key
}

func (s *stack) record() {
	s.Helper()
	_, err := vehicles.New(s.owner).Import(s.Context(), s.fleet)
	s.must(err)
}

// instance is one running service.
type instance struct {
	*stack
	base     string
	internal string
	health   string // address of the health listener; empty: none
	budget   time.Duration
	admin    string // token of an administrator
	stop     func()
}

// serve starts an instance and waits until it is ready.
func (s *stack) serve(change ...func(*app.Config)) *instance {
	s.Helper()
	i := s.serveUnready(change...)
	s.eventually(30*time.Second, "ready", func() bool { status, _ := i.readiness(); return status == http.StatusOK })
	return i
}

// config returns the settings of an instance. Commands have the longest time limit, for tests that
// do not test it.
func (s *stack) config() app.Config {
	return app.Config{
		HTTP: "127.0.0.1:0", Internal: "127.0.0.1:0", DatabaseURL: app.Secret(s.address), DatabaseConns: 8,
		RedisURL: app.Secret(s.redisURL), MQTTURL: []string{s.service}, MQTTUsername: mosquitto.ServiceUser,
		MQTTPassword: servicePassword, SigningKeys: filepath.Join(s.dir, "signing.jwks"),
		TokenKeys: filepath.Join(s.dir, "tokens.jwks"), TokenIssuer: "test", TokenAudience: "test",
		Budget: telematics.MaxBudget, AllowUnsafePostgres: true, LogLevel: "warn", LogFormat: "text",
		LogDropped: s.lines.Dropped, StateInterval: 2 * time.Second,
	}
}

func (s *stack) serveUnready(change ...func(*app.Config)) *instance {
	s.Helper()
	config := s.config()
	for _, f := range change {
		f(&config)
	}
	s.must(config.Check())
	listeners, err := config.Listen()
	s.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(s, app.Serve(ctx, config, listeners, s.log), "Serve")
	})
	stop := sync.OnceFunc(func() { cancel(); running.Wait() })
	s.Cleanup(stop)
	health, scheme := "", "http://"
	if config.HTTPCert != "" {
		scheme = "https://"
	}
	if listeners.Health != nil {
		health = "http://" + listeners.Health.Addr().String()
	}
	return &instance{
		health: health, budget: config.Budget,
		stack: s, base: scheme + listeners.Public.Addr().String(), internal: "http://" + listeners.Internal.Addr().String(),
		admin: s.token(telematics.Actor{Subject: "admin-7", Role: telematics.Admin}), stop: stop,
	}
}

func (s *stack) token(actor telematics.Actor) string {
	s.Helper()
	grant := app.Grant{Issuer: "test", Audience: "test", Actor: actor, Lifetime: time.Hour}
	if actor.Role == telematics.Admin && actor.Agency == 0 {
		grant.Scope = auth.ScopeAllAgencies + " " + auth.ScopeHalt + " " + auth.ScopeAgencyKeys
	}
	token, err := grant.Mint(s.tokens)
	s.must(err)
	s.inUse.AddToken(actor.Subject, token)
	return token
}

// drive runs simulated cars of protocol v1 until the test ends, and waits until they are connected.
func (s *stack) drive(recorder *simulator.Recorder, profile func(telematics.VehicleID) simulator.Profile) *simulator.Fleet {
	s.Helper()
	var cars []simulator.Config
	for _, v := range s.fleet.Vehicles {
		if cmp.Or(v.Protocol, telematics.DefaultProtocol) == telematics.DefaultProtocol {
			cars = append(cars, simulator.Config{
				Unit: v.Unit, Password: mosquitto.UnitPassword(unitSecret, string(v.Unit)), Profile: profile(v.ID),
			})
		}
	}
	fleet := simulator.NewFleet(
		simulator.FleetConfig{Broker: s.units, Keyring: s.signing.Keyring(), Recorder: recorder, Interval: s.interval},
		cars...)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(s, fleet.Run(ctx), "fleet")
	})
	s.Cleanup(func() { stop(); running.Wait() })
	s.eventually(30*time.Second, "all cars connected", func() bool { return connected(fleet) })
	return fleet
}

func connected(fleet *simulator.Fleet) bool {
	for _, car := range fleet.Cars() {
		if !car.Connected() {
			return false
		}
	}
	return true
}

// healthy is the profile of a car that executes every command.
func healthy(telematics.VehicleID) simulator.Profile {
	return simulator.Profile{Actions: simulator.AllActions}
}

// slow is the profile of cars that execute every command after a time.
func slow(latency time.Duration) func(telematics.VehicleID) simulator.Profile {
	return func(id telematics.VehicleID) simulator.Profile {
		p := healthy(id)
		p.Latency = simulator.Between(latency, latency+time.Millisecond)
		return p
	}
}

// slower is how many times longer a busy machine may take than an idle one, for which the limits
// are set.
const slower = 6

// eventually waits for a condition.
func (s *stack) eventually(within time.Duration, what string, holds func() bool) {
	s.Helper()
	within *= slower
	for deadline := time.Now().Add(within); !holds(); {
		if time.Now().After(deadline) {
			require.Late(s, "after %v this has not happened: %s", within, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// asAdmin sends a request of an administrator; headers are alternating names and values.
func (i *instance) asAdmin(method, target, body string, headers ...string) answer {
	i.Helper()
	return i.askWith(i.admin, method, target, body, headers...)
}

func (i *instance) askWith(token, method, target, body string, headers ...string) answer {
	i.Helper()
	request, err := http.NewRequest(method, i.base+target, strings.NewReader(body))
	i.must(err)
	request.Header.Set("Authorization", "Bearer "+token)
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	for pair := range slices.Chunk(headers, 2) {
		request.Header.Set(pair[0], pair[1])
	}
	return i.ask(request)
}

// get sends a GET request of an administrator, and decodes the data of a success.
func (i *instance) get(target string, into any) answer {
	i.Helper()
	a := i.asAdmin(http.MethodGet, target, "")
	if a.status == http.StatusOK && into != nil {
		data, err := json.Marshal(a.at("data"))
		i.must(err)
		i.must(json.Unmarshal(data, into))
	}
	return a
}

// control sends a command.
func (i *instance) control(vehicle int, action telematics.Action, headers ...string) answer {
	i.Helper()
	return i.asAdmin(http.MethodPost, fmt.Sprintf("/api/v1/admin/vehicles/%d/control/%s", vehicle, action), "", headers...)
}

// readiness returns the status and the checks of /readyz.
func (i *instance) readiness() (int, string) {
	i.Helper()
	response, err := http.Get(i.internal + "/readyz")
	i.must(err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	i.must(err)
	return response.StatusCode, string(body)
}

// metrics returns all metrics of the instance.
func (i *instance) metrics() metricstest.Values {
	i.Helper()
	values, err := metricstest.Read(i.Context(), http.DefaultClient, i.internal+"/metrics")
	i.must(err)
	return values
}

// metric returns one metric of the instance.
func (i *instance) metric(sample string) int64 {
	i.Helper()
	value, ok := i.metrics()[sample]
	if !ok {
		i.Fatalf("the instance has no metric %s", sample)
	}
	return int64(value)
}
