package firmware_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.mqtt.golang/packets"
	"go.uber.org/goleak"

	"motorpool/internal/require"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	modules "motorpool/simulator/ovms"
	"motorpool/simulator/ovms/firmware"
	"motorpool/telematics/ovms"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	unit = "OVMS-1"
	pin  = "4711"
)

// openBroker starts a Mosquitto without access rules, like that of the owner of a single car: the
// client's shell may publish everything there.
func openBroker(t *testing.T) string {
	t.Helper()
	devstack.NeedServer(t, devstack.MosquittoServer)
	port, err := devstack.FreePort()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "mosquitto.conf")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "listener %d 127.0.0.1\nallow_anonymous true\n", port), 0o600))
	server, err := devstack.StartProgram(t.Context(), devstack.ProgramConfig{
		Name: "mosquitto", Serving: " running", Command: func() *exec.Cmd { return exec.Command(devstack.MosquittoServer, "-c", file) },
	})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return "tcp://" + net.JoinHostPort("127.0.0.1", fmt.Sprint(port))
}

// world is one module, the shell of a client, and the record of what the module publishes.
type world struct {
	*testing.T
	*firmware.Recorder
	shell *firmware.Client
	subject
}

// subject is a module, with the events of its vehicle.
type subject struct {
	run           func(context.Context)
	alarms, drive func()
}

func begin(t *testing.T, module func(*testing.T, string) subject) world {
	t.Helper()
	broker := openBroker(t)
	recorder, err := firmware.Record(broker)
	require.NoError(t, err)
	t.Cleanup(recorder.Close)
	shell, err := firmware.Dial(broker, unit, "any", unit, "host:4242")
	require.NoError(t, err)
	t.Cleanup(shell.Close)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	s := module(t, recorder.URL())
	running.Go(func() { s.run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return world{t, recorder, shell, s}
}

func (w world) eventually(what string, holds func() bool) {
	w.Helper()
	for deadline := time.Now().Add(30 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.Fatalf("within 30 s this did not happen: %s", what)
		}
	}
}

func (w world) metric(name, want string) {
	w.Helper()
	w.eventually(name+" is "+want, func() bool { return w.shell.Metric(name) == want })
}

// command sends a line and expects an answer.
func (w world) command(id, line, want string) {
	w.Helper()
	w.shell.Send(id, line)
	var got string
	w.eventually("an answer to "+line, func() (ok bool) { got, ok = w.shell.Answer(id); return ok })
	if got != want {
		w.Errorf("the answer to %q is %q, want %q", line, got, want)
	}
}

// use does what the shell of a client does with a module, from its connection to its loss.
func (w world) use() {
	w.metric("s.v3.connected", "yes") // the firmware publishes this before it subscribes
	w.eventually("the module has subscribed", func() bool { return len(firmware.Of[*packets.SubackPacket](w.Arrived())) > 0 })
	w.metric("v.e.locked", "no")
	w.shell.SetActive(true)
	w.eventually("the module publishes that a client is connected", func() bool { _, ok := w.shell.Last("event/app/connected"); return ok })
	w.command("1", "lock "+pin, "Vehicle locked\n")
	w.metric("v.e.locked", "yes")
	// The repeated command changes nothing: neither a metric nor an event follows.
	w.command("again", "lock "+pin, "Vehicle locked\n")
	w.command("2", "unlock "+pin, "Vehicle unlocked\n")
	w.metric("v.e.locked", "no")
	w.command("3", "lock", "Usage: lock <pin>\n")
	w.command("4", "unlock 1 2", "Usage: unlock <pin>\n")
	w.command("5", "nonsense", "Unrecognised command\n")
	w.alarms()
	w.eventually("alarms are published", func() bool { _, ok := w.shell.Last("event/location/alert/flatbed/moved"); return ok })
	w.drive()
	w.eventually("a drive has ended", func() bool { _, ok := w.shell.Last("event/vehicle/off"); return ok })
	all := len(w.metrics())
	w.command("6", "server v3 update all", "Server V3 data update for all metrics has been scheduled\n")
	w.eventually("all metrics are sent again", func() bool { return len(w.metrics()) >= all+20 })
	requested := w.count("metric/v/b/soc")
	w.shell.Request("v.b.*")
	w.eventually("the requested metric is sent again", func() bool { return w.count("metric/v/b/soc") > requested })
	w.shell.SetActive(false)
	w.eventually(
		"the module publishes that no client is connected",
		func() bool { _, ok := w.shell.Last("event/app/disconnected"); return ok },
	)
	w.Cut()
	w.metric("s.v3.connected", "no")
}

func (w world) published() []*packets.PublishPacket {
	return firmware.Of[*packets.PublishPacket](w.Sent())
}

func (w world) metrics() []*packets.PublishPacket {
	return slices.DeleteFunc(w.published(), func(p *packets.PublishPacket) bool { return !strings.HasPrefix(below(p), "metric/") })
}

func (w world) count(topic string) (n int) {
	for _, p := range w.published() {
		if below(p) == topic {
			n++
		}
	}
	return n
}

func below(p *packets.PublishPacket) string {
	return strings.TrimPrefix(p.TopicName, "ovms/"+unit+"/"+unit+"/")
}

func newSimulated(t *testing.T, broker string) subject {
	body := simulator.ElectricCar(simulator.Point{Latitude: 48.1487, Longitude: 11.5680})
	body.Locked = false
	m := modules.New(modules.Config{
		Unit: unit, Password: "any", Broker: broker, Type: "NL", PIN: pin, Body: body, StableWait: time.Millisecond,
		Speed: 1 / second.Seconds(),
	})
	ignition := func(on bool) {
		m.Do(t.Context(), func(b *simulator.Body, _ *modules.Faults) { b.Ignition = on })
	}
	return subject{func(ctx context.Context) { _ = m.Run(ctx) }, func() {
		m.Alert(t.Context(), "alarm.sounding", "Vehicle alarm is sounding")
		m.Alert(t.Context(), "batt.12v.alert", "12V Battery critical: 11.1V (ref=12.6V)")
		m.Alert(t.Context(), "flatbed.moved", moved)
	}, func() { ignition(true); ignition(false) }}
}

func newIndependent(_ *testing.T, broker string) subject {
	m := firmware.New(firmware.Config{
		Broker: broker, User: unit, Password: "any", VehicleID: unit, Include: ovms.Metrics(), Keepalive: time.Minute,
		Doors: 20 * time.Millisecond, Second: second,
	})
	park(m)
	return subject{m.Run, func() {
		m.Set("v.e.alarm", true)
		m.Set("v.b.12v.voltage.alert", true)
		m.Notify("alert", "flatbed.moved", moved)
		m.Signal("location.alert.flatbed.moved")
	}, func() { m.Set("v.e.on", true); m.Set("v.e.on", false) }}
}

const (
	second = 50 * time.Millisecond // one second of the module
	moved  = "Vehicle is being transported while parked - possible theft/flatbed (@48.148701,11.568000)"
)

// park makes the module's vehicle report what a parked car does.
func park(m *firmware.Module) {
	for name, value := range map[string]any{
		"m.version": "3.3.006", "v.type": "NL", "v.b.soc": 71.5, "v.b.range.est": 180.0, "v.b.12v.voltage": 12.6, "v.c.state": "stopped",
		"v.d.fl": false, "v.d.fr": false, "v.d.rl": false, "v.d.rr": false, "v.d.trunk": false, "v.e.gear": 0, "v.e.handbrake": true,
		"v.e.locked": false, "v.e.on": false,
		"v.e.serv.range": 12000, "v.p.direction": 90.0, "v.p.gpstime": time.Now().UTC(), "v.p.latitude": 48.1487, "v.p.longitude": 11.568,
		"v.p.odometer": 41234.5, "v.p.speed": 0.0,
	} {
		m.Set(name, value)
	}
}

// The test compares what a module written from the source of the firmware and the simulated module
// publish for the same events.
func TestModule_SimulatedPublishesWhatTheFirmwareDoes(t *testing.T) {
	var simulated, independent world
	t.Run("simulated", func(t *testing.T) { simulated = begin(t, newSimulated); simulated.use() })
	t.Run("independent", func(t *testing.T) { independent = begin(t, newIndependent); independent.use() })
	if t.Failed() {
		return
	}
	if got, want := simulated.login(), independent.login(); got != want {
		t.Errorf("the simulated module logs in with %s\nwant %s", got, want)
	}
	if got, want := simulated.subscriptions(), independent.subscriptions(); !slices.Equal(got, want) {
		t.Errorf("the simulated module subscribes to %q\nwant %q", got, want)
	}
	if got, want := simulated.story(), independent.story(); !slices.Equal(got, want) {
		t.Errorf("the simulated module publishes\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, name := range ovms.Metrics() {
		if simulated.count("metric/"+strings.ReplaceAll(name, ".", "/")) == 0 {
			t.Errorf("the simulated module does not publish %s", name)
		}
	}
	for _, w := range []world{simulated, independent} {
		for _, p := range w.metrics() {
			name := strings.ReplaceAll(strings.TrimPrefix(below(p), "metric/"), "/", ".")
			kind, ok := firmware.Kinds[name]
			if !ok || !kind.Reads(string(p.Payload)) || p.Qos != 0 || !p.Retain {
				t.Errorf("%s=%q with QoS %d, retained %v: the firmware has no such message", name, p.Payload, p.Qos, p.Retain)
			}
		}
	}
}

// login returns the first packet without its length.
func (w world) login() string {
	p := firmware.Of[*packets.ConnectPacket](w.Sent())[0]
	p.RemainingLength = 0
	return p.String()
}

func (w world) subscriptions() (all []string) {
	for _, p := range firmware.Of[*packets.SubscribePacket](w.Sent()) {
		topics := slices.Clone(p.Topics)
		slices.Sort(topics) // the order of a map is random
		all = append(all, fmt.Sprintf("%q with QoS %x", topics, p.Qoss))
	}
	return all
}

// story returns all publications except metrics in order, and the state of the locks when it
// changes.
func (w world) story() (all []string) {
	locked := "no"
	for _, p := range w.published() {
		topic, payload := below(p), string(p.Payload)
		if topic == "metric/v/e/locked" && payload != locked {
			locked = payload
		} else if strings.HasPrefix(topic, "metric/") {
			continue
		}
		all = append(all, fmt.Sprintf("%s=%q QoS %d retained %v", topic, payload, p.Qos, p.Retain))
	}
	return all
}
