package main

import (
	"context"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/simulator/ovms"
)

// module runs a simulated module until the test ends.
func module(t *testing.T, broker *devstack.Mosquitto, password string) *ovms.Module {
	t.Helper()
	m := ovms.New(ovms.Config{
		Unit: "OVMS-1", Password: password, Broker: broker.UnitsURL(), Speed: 20, StableWait: time.Second,
		Body: simulator.ElectricCar(simulator.Point{Latitude: 48.1, Longitude: 11.5}),
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { _ = m.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return m
}

func awaitConnected(t *testing.T, m *ovms.Module) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !m.Connected(); time.Sleep(10 * time.Millisecond) {
		if m.Suspended() || time.Now().After(deadline) {
			t.Fatalf("the module is not connected; refused: %t", m.Suspended())
		}
	}
}

// A round of the fault harness rotates the passwords of modules that are stopped.
func TestUnit_RotatingARunningOVMSModuleIsRefused(t *testing.T) {
	broker := operatedMosquitto(t, devstack.MosquittoConfig{ServicePassword: "service"})
	added, _, err := runTool(t, "unit", "add", "OVMS-1", "--protocol", "ovms", "--vehicle-type", "NL", "--server", "mqtt.example.com")
	require.NoError(t, err)
	pin := regexp.MustCompile(`\n  config set password pin ([1-9][0-9]{5})\n`).FindStringSubmatch(added)
	if pin == nil || !strings.Contains(added, `"installation": {"pin":"`+pin[1]+`","type":"NL"}`) ||
		!strings.Contains(added, "\n  config set auto vehicle.type NL\n") {
		t.Errorf("the PIN of the module and of its record is missing in\n%s", added)
	}
	// Mosquitto has read the password.
	connectSoon(t, broker, "OVMS-1", passwordOf(t, added, "OVMS-1")).Cut()
	running := module(t, broker, passwordOf(t, added, "OVMS-1"))
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

}

// awaitOnline waits until the retained presence of the module is online.
func awaitOnline(t *testing.T) {
	t.Helper()
	s := serviceAccount{MQTTURL: []string{os.Getenv("MOTORPOOL_MQTT_URL")}, MQTTUsername: mosquitto.ServiceUser, MQTTPassword: "service"}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		_, online, err := s.modules(t.Context(), []string{"OVMS-1"})
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("modules %v are online, %v", online, err)
		}
		if len(online) > 0 {
			return
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}
