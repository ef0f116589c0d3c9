// Package provision_test gives units their credentials as an operator does, while commands run.
package provision_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/lab/program"
	"motorpool/lab/world"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/store/vehicles"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

const (
	operated  = 1 // the vehicle whose unit gets other credentials
	bystander = 2 // vehicles 2 and 3 get commands throughout
)

var binary string // of the program

func TestMain(m *testing.M) { os.Exit(program.Main("motorpool/cmd/motorpool", &binary, m.Run)) }

// provisioned is an installation in which units get their credentials from the command line.
type provisioned struct {
	*world.World
	t       *testing.T
	trusted *tls.Config         // of clients of the MQTT broker
	issuer  *devstack.Authority // of the certificates of units
	crl     string
	token   string
}

func TestUnits_ProvisioningDoesNotDisturbOtherUnits(t *testing.T) {
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer} {
		devstack.NeedServer(t, server)
	}
	require.NoError(t, world.Run(t.Context(), t.TempDir(), binary, slog.New(slog.NewTextHandler(t.Output(), nil)),
		func(ctx context.Context, w *world.World) error {
			p := &provisioned{World: w, t: t, crl: w.Path("units.crl")}
			if err := p.Build(ctx, world.Step{What: "servers", Do: p.startServers},
				world.Step{What: "service", Do: p.startService}); err != nil {
				return err
			}
			return p.operate(ctx)
		}))
}

func (p *provisioned) startServers(ctx context.Context) error {
	var err error
	if p.token, err = p.Token(telematics.Actor{Subject: "operator", Role: telematics.Admin}, auth.ScopeAllAgencies); err != nil {
		return err
	}
	servers, err := devstack.NewAuthority(p.Path("servers"))
	if err != nil {
		return err
	}
	p.trusted = servers.Trusted()
	own, err := servers.Issue("server")
	if err != nil {
		return err
	}
	if p.issuer, err = devstack.NewAuthority(p.Path("issuer")); err != nil {
		return err
	}
	p.revoke()
	if p.Mosquitto, err = devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: p.Path("mosquitto"), ServicePassword: p.ServicePassword, Logger: p.LogFile("mosquitto"),
		CertFile: own.CertFile, KeyFile: own.KeyFile, UnitsCA: p.issuer.CAFile, UnitsCRL: p.crl,
	}); err != nil {
		return err
	}
	p.OnClose(p.Mosquitto.Close)
	if p.Redis, err = devstack.StartRedis(p.Path("redis"), nil); err != nil {
		return err
	}
	p.OnClose(p.Redis.Close)
	if p.Postgres, err = devstack.StartPostgres(ctx,
		devstack.PostgresConfig{Dir: p.Path("postgres"), Logger: p.LogFile("postgres")}); err != nil {
		return err
	}
	p.OnClose(p.Postgres.Discard)
	p.t.Setenv("MOTORPOOL_UNITS_PASSWD", p.Mosquitto.UnitsPasswords())
	p.t.Setenv("MOTORPOOL_MOSQUITTO_PID_FILE", p.Mosquitto.PIDFile())
	return nil
}

func (p *provisioned) startService(ctx context.Context) error {
	if _, err := p.StartInstance(ctx, world.InstanceConfig{}); err != nil {
		return err
	}
	if err := p.Ready(ctx); err != nil {
		return err
	}
	// The variable is for 'unit remove'. The instance has another one.
	p.t.Setenv("MOTORPOOL_MQTT_URL", p.Mosquitto.ServiceURL())
	p.t.Setenv("MOTORPOOL_MQTT_PASSWORD", p.ServicePassword)
	fleet := vehicles.FleetFile{Agencies: []telematics.Agency{{ID: 1, Code: "A", Name: "Agency"}}}
	for id := operated; id <= bystander+1; id++ {
		fleet.Vehicles = append(fleet.Vehicles, world.Vehicle(id, 1, unitOf(id)))
	}
	return p.Import(ctx, fleet)
}

func unitOf(vehicle int) telematics.Unit { return telematics.Unit(fmt.Sprintf("unit-%d", vehicle)) }

// operate does what an operator does with the unit of one vehicle, by password and by certificate.
func (p *provisioned) operate(ctx context.Context) error {
	process, err := os.ReadFile(p.Mosquitto.PIDFile())
	if err != nil {
		return err
	}
	added := p.tool("unit", "add", string(unitOf(bystander)), string(unitOf(bystander+1)))
	for id := bystander; id <= bystander+1; id++ {
		p.drive(id, passwordOf(p.t, added, string(unitOf(id))), p.byPassword())
		p.want(ctx, id, telematics.Lock, "200")
	}
	traffic, stop := context.WithCancel(ctx)
	others := p.commandOthers(traffic)
	defer stop()

	unit := string(unitOf(operated))
	added = p.tool("unit", "add", unit)
	end := p.drive(operated, passwordOf(p.t, added, unit), p.byPassword())
	p.want(ctx, operated, telematics.Lock, "200")
	rotated := p.tool("unit", "rotate", unit)
	p.wantGone(ctx, operated) // the unit still has the old password
	end()
	end = p.drive(operated, passwordOf(p.t, rotated, unit), p.byPassword())
	p.want(ctx, operated, telematics.Unlock, "200")
	p.tool("unit", "remove", unit)
	p.wantOffline(ctx, operated)
	p.wantGone(ctx, operated)
	end()

	first := p.issue(unit)
	end = p.drive(operated, "", p.byCertificate(first))
	p.want(ctx, operated, telematics.Lock, "200")
	second := p.issue(unit)
	p.revoke(first)
	p.tool("unit", "remove", unit)
	p.wantGone(ctx, operated) // the unit still has the old certificate
	end()
	end = p.drive(operated, "", p.byCertificate(second))
	p.want(ctx, operated, telematics.Unlock, "200")
	p.revoke(first, second)
	p.tool("unit", "remove", unit)
	p.wantOffline(ctx, operated)
	p.wantGone(ctx, operated)
	end()

	stop()
	answers := <-others
	if sent := answers["200"]; sent < 20 || len(answers) != 1 {
		p.t.Errorf("the responses to commands of other vehicles are %v, want only 200", answers)
	}
	if still, err := os.ReadFile(p.Mosquitto.PIDFile()); err != nil || string(still) != string(process) {
		p.t.Errorf("Mosquitto was restarted: process %s, then %s, %v", process, still, err)
	}
	return p.flood(ctx)
}

// flood makes one unit send as fast as it can. Commands to other units are as fast as before.
func (p *provisioned) flood(ctx context.Context) error {
	added := p.tool("unit", "add", string(unitOf(operated)))
	flooding, err := p.byPassword().Dial(
		ctx, simulator.Login{Unit: unitOf(operated), Password: passwordOf(p.t, added, string(unitOf(operated)))},
		func(simulator.Message) {},
	)
	if err != nil {
		return err
	}
	flood, stop := context.WithCancel(ctx)
	sent := make(chan int, 1)
	go func() {
		n := 0
		for ; flood.Err() == nil; n++ {
			if flooding.Publish(v1.TelemetryChannel, []byte(`{"v":1}`), false) != nil ||
				flooding.Publish(v1.AckChannel, []byte(`{"v":1}`), false) != nil {
				break
			}
		}
		sent <- n
	}()
	var took []time.Duration
	for n := range 10 {
		began := time.Now()
		if answer := p.callPatiently(ctx, bystander, []telematics.Action{telematics.Lock, telematics.Unlock}[n%2]); answer != "200" {
			p.t.Errorf("a command to another vehicle during the flood: %s, want 200", answer)
		}
		took = append(took, time.Since(began))
	}
	stop()
	n := <-sent
	flooding.Cut()
	slices.Sort(took)
	p.t.Logf("one unit sent %d messages; commands to another took %v, at most %v", 2*n, took[len(took)/2], took[len(took)-1])
	if n < 1000 {
		p.t.Errorf("only %d messages were sent, want at least 2000", 2*n)
	}
	if median := took[len(took)/2]; median > 5*time.Second {
		p.t.Errorf("commands to another vehicle took %v, half of what they may", median)
	}
	return nil
}

// revoke writes the list of all revoked certificates.
func (p *provisioned) revoke(certificates ...tls.Certificate) {
	p.t.Helper()
	require.NoError(p.t, p.issuer.WriteRevocations(p.crl, certificates...))
}

func (p *provisioned) issue(unit string) tls.Certificate {
	p.t.Helper()
	certificate, err := p.issuer.Login(unit, time.Hour)
	require.NoError(p.t, err)
	return certificate
}

// tool runs a command of the operator, and returns what it prints.
func (p *provisioned) tool(args ...string) string {
	p.t.Helper()
	printed, err := exec.Command(p.Binary, args...).Output()
	if err != nil {
		p.t.Fatalf("%v: %v\n%s", args, err, printed)
	}
	return string(printed)
}

func passwordOf(t *testing.T, printed, unit string) string {
	t.Helper()
	for line := range strings.Lines(printed) {
		if name, password, _ := strings.Cut(strings.TrimSpace(line), " "); name == unit {
			return password
		}
	}
	t.Fatalf("the password of %s is missing in %q", unit, printed)
	return ""
}

func (p *provisioned) byPassword() simulator.MQTT {
	return simulator.MQTT{Broker: p.Mosquitto.UnitsURL(), TLS: p.trusted}
}

func (p *provisioned) byCertificate(certificate tls.Certificate) simulator.MQTT {
	config := p.trusted.Clone()
	config.Certificates = []tls.Certificate{certificate}
	return simulator.MQTT{Broker: p.Mosquitto.CertificatesURL(), TLS: config}
}

// drive runs a car until end is called or the world is closed.
func (p *provisioned) drive(vehicle int, password string, radio simulator.Radio) (end func()) {
	fleet := simulator.NewFleet(simulator.FleetConfig{Keyring: p.Signing.Keyring()}, simulator.Config{
		Unit: unitOf(vehicle), Password: password, Radio: radio, Profile: simulator.Profile{Actions: simulator.AllActions},
	})
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		assert.NoError(p.t, fleet.Run(ctx), "vehicle %d", vehicle)
	})
	end = func() { stop(); running.Wait() }
	p.OnClose(func() error { end(); return nil })
	return end
}

// want repeats a command until it gets the wanted response: presence takes a moment.
func (p *provisioned) want(ctx context.Context, vehicle int, action telematics.Action, answer string) {
	p.t.Helper()
	var last string
	if err := world.Eventually(ctx, time.Minute, answer, func(ctx context.Context) bool {
		last = p.call(ctx, vehicle, action)
		return last == answer
	}); err != nil {
		p.t.Fatalf("%s of vehicle %d: last response %s, %v", action, vehicle, last, err)
	}
}

// wantOffline waits until the service shows a vehicle as offline.
func (p *provisioned) wantOffline(ctx context.Context, vehicle int) {
	p.t.Helper()
	var body struct {
		Data []struct {
			ID           int
			Connectivity struct{ Status string }
		}
	}
	if err := world.Eventually(ctx, time.Minute, "offline", func(ctx context.Context) bool {
		list := world.Request{Method: http.MethodGet, URL: p.Running[0].Public + "/api/v1/admin/vehicles", Token: p.token}
		if _, _, err := list.Do(ctx, world.Callers, &body); err != nil {
			return false
		}
		for _, v := range body.Data {
			if v.ID == vehicle {
				return v.Connectivity.Status == "offline"
			}
		}
		return false
	}); err != nil {
		p.t.Fatalf("vehicle %d: %+v, %v", vehicle, body.Data, err)
	}
}

// wantGone waits until the unit executes no command any more, and verifies that it stays so. The
// service still sends commands to an offline vehicle for a minute.
func (p *provisioned) wantGone(ctx context.Context, vehicle int) {
	p.t.Helper()
	var last string
	gone := func() bool {
		last = p.call(ctx, vehicle, telematics.Lock, "Prefer", "wait=1")
		return last == "503 vehicle_offline" || last == "504 command_timeout"
	}
	// One command may have no answer in time on a busy machine.
	if err := world.Eventually(ctx, 2*time.Minute, "gone", func(ctx context.Context) bool {
		if !gone() {
			return false
		}
		world.Pause(ctx, time.Second) // in which the unit tries to connect
		return gone()
	}); err != nil {
		p.t.Fatalf("vehicle %d still answers: %s, %v", vehicle, last, err)
	}
	p.t.Logf("vehicle %d does not execute commands any more: %s", vehicle, last)
}

// commandOthers locks and unlocks the other vehicles until the context ends, and then sends the
// numbers of their responses.
func (p *provisioned) commandOthers(ctx context.Context) <-chan map[string]int {
	done := make(chan map[string]int, 1)
	go func() {
		answers := map[string]int{}
		for n := 0; ctx.Err() == nil; n++ {
			action := []telematics.Action{telematics.Lock, telematics.Unlock}[n/2%2]
			answers[p.callPatiently(context.WithoutCancel(ctx), bystander+n%2, action)]++
			world.Pause(ctx, 20*time.Millisecond)
		}
		done <- answers
	}()
	return done
}

// callPatiently sends a command with the longest time limit: one may be slow on a busy machine.
func (p *provisioned) callPatiently(ctx context.Context, vehicle int, action telematics.Action) string {
	return p.call(ctx, vehicle, action, "Prefer", "wait=30")
}

// call sends one command, and returns the status and code of the response. It repeats what was not
// sent because a server did not respond in time. Headers are alternating names and values.
func (p *provisioned) call(ctx context.Context, vehicle int, action telematics.Action, headers ...string) (answer string) {
	for range 10 {
		if answer = p.callOnce(ctx, vehicle, action, headers...); answer != "503 telematics_unavailable" {
			break
		}
		world.Pause(ctx, 500*time.Millisecond)
	}
	return answer
}

func (p *provisioned) callOnce(ctx context.Context, vehicle int, action telematics.Action, headers ...string) string {
	request := world.Request{
		URL:   fmt.Sprintf("%s/api/v1/admin/vehicles/%d/control/%s", p.Running[0].Public, vehicle, action),
		Token: p.token, Header: map[string]string{},
	}
	for pair := range slices.Chunk(headers, 2) {
		request.Header[pair[0]] = pair[1]
	}
	var body struct{ Error struct{ Code string } }
	status, _, err := request.Do(ctx, world.Callers, &body)
	switch {
	case err != nil:
		return err.Error()
	case body.Error.Code == "":
		return fmt.Sprint(status)
	}
	return fmt.Sprintf("%d %s", status, body.Error.Code)
}
