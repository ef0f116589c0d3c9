package main

import (
	"context"
	"crypto/tls"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/ovms"
)

// module runs a simulated module until stop. After a refused login it does not connect any more.
func module(t *testing.T, broker *devstack.Mosquitto, password string) (m *ovms.Module, stop func()) {
	t.Helper()
	return moduleWith(t, ovms.Config{Password: password, Broker: broker.UnitsURL()})
}

func moduleWith(t *testing.T, c ovms.Config) (m *ovms.Module, stop func()) {
	t.Helper()
	c.Unit, c.Speed, c.StableWait, c.Body = "OVMS-1", 20, time.Second, simulator.ElectricCar(simulator.Point{Latitude: 48.1, Longitude: 11.5})
	m = ovms.New(c)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = m.Run(ctx); close(ended) }()
	stop = func() { cancel(); <-ended }
	t.Cleanup(stop)
	return m, stop
}

func awaitConnected(t *testing.T, m *ovms.Module) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !m.Connected(); time.Sleep(10 * time.Millisecond) {
		if m.Suspended() || time.Now().After(deadline) {
			t.Fatalf("the module is not connected; refused: %t", m.Suspended())
		}
	}
}

func TestUnit_RotatingAnOVMSModuleNeverRefusesItsLogin(t *testing.T) {
	broker := operatedMosquitto(t, devstack.MosquittoConfig{ServicePassword: "service"})
	added, _, err := runTool(t, "unit", "add", "OVMS-1", "--protocol", "ovms", "--vehicle-type", "NL", "--server", "mqtt.example.com")
	if err != nil {
		t.Fatal(err)
	}
	pin := regexp.MustCompile(`\n  config set password pin ([1-9][0-9]{5})\n`).FindStringSubmatch(added)
	if pin == nil || !strings.Contains(added, `"installation": {"pin":"`+pin[1]+`","type":"NL"}`) || !strings.Contains(added, "\n  config set auto vehicle.type NL\n") {
		t.Errorf("the PIN of the module and of its record is missing in\n%s", added)
	}
	// Mosquitto has read the password.
	connectSoon(t, broker, "OVMS-1", passwordOf(t, added, "OVMS-1")).Cut()
	running, stop := module(t, broker, passwordOf(t, added, "OVMS-1"))
	awaitConnected(t, running)
	before := read(t, broker.UnitsPasswords())

	refused := func(want string, args ...string) {
		t.Helper()
		printed, said, err := runTool(t, append([]string{"unit", "rotate", "OVMS-1"}, args...)...)
		if err == nil || exitCode(err) != exitRefused || !strings.Contains(err.Error(), want) || printed != "" {
			t.Errorf("rotate %v: printed %q and %q, error %v, want %q", args, printed, said, err, want)
		}
	}
	refused("server v3 stop", "--protocol", "ovms")
	t.Setenv("MOTORPOOL_MQTT_URL", broker.ServiceURL())
	t.Setenv("MOTORPOOL_MQTT_PASSWORD", "service")
	awaitOnline(t)
	refused("is an OVMS module")
	refused("still connected", "--stopped")
	refused("rotated separately", "other")
	if read(t, broker.UnitsPasswords()) != before {
		t.Error("a refused command changed the file")
	}
	if running.Suspended() || !running.Connected() {
		t.Error("the module lost its connection")
	}

	stop() // as the command server v3 stop does
	rotated, _, err := runTool(t, "unit", "rotate", "OVMS-1", "--stopped")
	if err != nil || !strings.Contains(rotated, "config set password server.v3 PASSWORD\n  server v3 start") {
		t.Fatalf("rotate: %v\n%s", err, rotated)
	}
	connectSoon(t, broker, "OVMS-1", passwordOf(t, rotated, "OVMS-1")).Cut()
	again, _ := module(t, broker, passwordOf(t, rotated, "OVMS-1"))
	awaitConnected(t, again)
	late, _ := module(t, broker, passwordOf(t, added, "OVMS-1"))
	for deadline := time.Now().Add(time.Minute); !late.Suspended(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the old password is still accepted, so the test is not valid")
		}
	}
}

func TestUnit_ModuleKeepsItsCertificateUntilItUsesTheNext(t *testing.T) {
	pki := newPKI(t)
	config := pki.brokerConfig(t)
	config.ServicePassword = "service"
	broker := operatedMosquitto(t, config)
	t.Setenv("MOTORPOOL_MQTT_URL", broker.ServiceURL())
	t.Setenv("MOTORPOOL_MQTT_PASSWORD", "service")
	server := pki.serve(t)
	with := func(certificate tls.Certificate) ovms.Config {
		secured := pki.trusted.Clone()
		secured.Certificates = []tls.Certificate{certificate}
		return ovms.Config{Broker: broker.CertificatesURL(), TLS: secured}
	}
	first := pki.enrol(t, server, "OVMS-1")
	running, stop := moduleWith(t, with(first))
	awaitConnected(t, running)
	rotated, _, err := runTool(t, "unit", "rotate", "OVMS-1", "--protocol", "ovms")
	code := regexp.MustCompile(`Bearer ([A-Z0-9]+)"`).FindStringSubmatch(rotated)
	if err != nil || code == nil || !strings.Contains(rotated, "motorpool unit remove --superseded OVMS-1") {
		t.Fatalf("rotate: %v\n%s", err, rotated)
	}
	request, key := newRequest(t, "OVMS-1")
	status, answer := pki.post(t, server, code[1], request)
	if status != http.StatusOK {
		t.Fatalf("enrolment: status %d: %s", status, answer)
	}

	// The module does not have the next certificate yet.
	awaitOnline(t)
	printed, _, err := runTool(t, "unit", "remove", "--superseded", "OVMS-1", "--wait", "2s")
	if err == nil || printed != "" || !strings.Contains(err.Error(), "valid again") {
		t.Errorf("remove --superseded before the module uses the next: %q %v", printed, err)
	}
	awaitConnected(t, running)
	stop()
	if _, _, err := runTool(t, "unit", "remove", "--superseded", "OVMS-1"); exitCode(err) != exitRefused {
		t.Errorf("remove --superseded while the module is not connected: %v", err)
	}

	again, _ := moduleWith(t, with(certificateOf(answer, key)))
	awaitConnected(t, again)
	awaitOnline(t)
	if printed, _, err := runTool(t, "unit", "remove", "--superseded", "OVMS-1"); err != nil || printed != "removed: OVMS-1" {
		t.Errorf("remove --superseded after the module uses the next: %q %v", printed, err)
	}
	awaitConnected(t, again)
	if _, err := pki.connect(t, broker, "OVMS-1", first); err == nil {
		t.Error("the removed certificate is accepted")
	}
	if running.Suspended() || again.Suspended() {
		t.Error("a login of the module was refused")
	}
}

// awaitOnline waits until the retained presence of the module is online.
func awaitOnline(t *testing.T) {
	t.Helper()
	s := serviceAccount{MQTTURL: []string{os.Getenv("MOTORPOOL_MQTT_URL")}, MQTTUsername: mosquitto.ServiceUser, MQTTPassword: "service"}
	if missing, err := s.awaitModules(t.Context(), []string{"OVMS-1"}, time.Minute); err != nil || len(missing) > 0 {
		t.Fatalf("modules %v are not online, %v", missing, err)
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
