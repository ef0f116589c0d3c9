package ovms

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/google/uuid"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/simulator/devstack"
	"motorpool/telematics"
	codec "motorpool/telematics/ovms"
)

const patience = time.Minute

// onceItListens is how often a module has sent its metrics when it is ready for commands: once
// before it subscribes, and once after.
const onceItListens = 2

// service is a client with the rights of the service, which records the messages of units.
type service struct {
	t      *testing.T
	client paho.Client
	mu     sync.Mutex
	heard  []paho.Message
}

// world is a module at a real Mosquitto with the production access rules.
type world struct {
	*service
	broker   *devstack.Mosquitto
	tap      *Tap
	module   *Module
	recorder *simulator.Recorder
}

func begin(t *testing.T, config Config) world {
	t.Helper()
	devstack.NeedServer(t, devstack.MosquittoServer)
	broker, err := devstack.StartMosquitto(
		devstack.MosquittoConfig{Dir: t.TempDir(), Units: map[string]string{"OV-1": "password"}, ServicePassword: "secret"},
	)
	require.NoError(t, err)
	t.Cleanup(func() { _ = broker.Close() })
	s := &service{t: t}
	s.client = paho.NewClient(paho.NewClientOptions().AddBroker(broker.ServiceURL()).SetClientID("service").
		SetUsername(mosquitto.ServiceUser).SetPassword("secret").
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.heard = append(s.heard, m)
		}))
	filters := map[string]byte{
		"ovms/+/+/metric/#": 1, "ovms/+/+/client/motorpool/response/+": 1, "ovms/+/+/notify/alert/#": 1, "ovms/+/+/client/#": 1,
	}
	for _, do := range []func() paho.Token{s.client.Connect, func() paho.Token { return s.client.SubscribeMultiple(filters, nil) }} {
		if token := do(); !token.WaitTimeout(patience) || token.Error() != nil {
			t.Fatal(token.Error())
		}
	}
	t.Cleanup(func() { s.client.Disconnect(100) })

	tap, err := NewTap(broker.UnitsURL())
	require.NoError(t, err)
	t.Cleanup(tap.Close)
	w := world{service: s, broker: broker, tap: tap, recorder: &simulator.Recorder{}}
	config.Unit, config.Broker, config.Recorder = "OV-1", tap.URL(), w.recorder
	if config.Password == "" {
		config.Password = "password"
	}
	if config.Speed == 0 {
		config.Speed = 50
	}
	if config.Body.Powertrain == "" {
		config.Body = simulator.ElectricCar(simulator.Point{Latitude: 48.1374, Longitude: 11.5755})
		config.Body.Locked = false
	}
	config.StableWait = time.Second
	w.module = New(config)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- w.module.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	return w
}

// ovms returns a topic of the module.
func ovms(last string) string { return "ovms/OV-1/OV-1/" + last }

func (s *service) count(last, payload string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range s.heard {
		if m.Topic() == ovms(last) && strings.TrimSpace(string(m.Payload())) == payload {
			n++
		}
	}
	return n
}

func (s *service) await(times int, last, payload string) {
	s.t.Helper()
	eventually(s.t, last+" = "+payload, func() bool { return s.count(last, payload) >= times })
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Late(t, "this did not happen: %s, within %s", what, patience)
		}
	}
}

func (s *service) send(last, payload string) {
	s.t.Helper()
	if !s.client.Publish(ovms(last), 0, false, payload).WaitTimeout(patience) {
		s.t.Fatal("the message was not published")
	}
}

func (s *service) order(line string) (id telematics.CommandID, answers string) {
	s.t.Helper()
	id = uuid.New()
	s.send("client/motorpool/command/"+id.String(), line)
	return id, "client/motorpool/response/" + id.String()
}

func kinds(events []simulator.Event) (all []simulator.Kind) {
	for _, e := range events {
		all = append(all, e.Kind)
	}
	return all
}

// The module was written from the firmware, and the codec separately; both must agree.
func TestModule_PublishesWhatTheCodecReads(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{})
	w.await(onceItListens, "metric/v/type", "NL")
	w.await(1, "metric/s/v3/connected", "yes")
	fields := map[telematics.Field]any{}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, m := range w.heard {
		unit, subject, err := codec.Dialect{}.ParseTopic(m.Topic())
		if err != nil || unit != "OV-1" {
			t.Fatalf("%s: %q, %v", m.Topic(), unit, err)
		}
		r, dropped, err := codec.Dialect{}.DecodeReport(telematics.Message{Subject: subject, Payload: m.Payload()}, time.Now())
		if len(dropped) > 0 || err != nil && subject != "metric/s/v3/connected" {
			t.Errorf("%s %q: dropped %v, %v", m.Topic(), m.Payload(), dropped, err)
		}
		maps.Copy(fields, r.Values)
	}
	for _, f := range []telematics.Field{
		telematics.Latitude, telematics.Longitude, telematics.Heading, telematics.LocatedAt, telematics.SpeedKmh, telematics.MileageKm,
		telematics.Ignition,
		telematics.Gear, telematics.ParkBrake, telematics.Battery, telematics.RangeKm, telematics.Charging, telematics.OnboardV,
		telematics.IsLocked,
		telematics.DoorFrontLeft, telematics.DoorTrunk, telematics.ServiceDueKm, telematics.Firmware, telematics.OEMData,
	} {
		if _, ok := fields[f]; !ok {
			t.Errorf("no metric has the field %s", f)
		}
	}
}

func TestModule_ExecutesEveryCopyOfACommand(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{})
	w.await(onceItListens, "metric/v/e/locked", "no")
	id, answers := w.order("lock 4711")
	w.await(1, answers, "Vehicle locked")
	w.await(1, "metric/v/e/locked", "yes")
	w.send("client/motorpool/command/"+id.String(), "lock 4711")
	w.await(2, answers, "Vehicle locked")
	eventually(t, "executed twice", func() bool {
		return strings.Count(fmt.Sprint(kinds(w.recorder.Of(id))), string(simulator.CommandStarted)) == 2
	})
	_, answers = w.order("server v3 update all")
	w.await(1, answers, "Server V3 data update for all metrics has been scheduled")
	w.await(onceItListens+1, "metric/v/type", "NL")
	_, answers = w.order("boot")
	w.await(1, answers, "Unrecognised command")
}

func TestModule_AnswersLockedAlthoughTheCarIsNot(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"NL", "RZ"} {
		w := begin(t, Config{Type: kind, Faults: Faults{Stuck: true}})
		w.await(onceItListens, "metric/v/e/locked", "no")
		id, answers := w.order("lock 4711")
		w.await(1, answers, "Vehicle locked")
		eventually(t, "the frames were ignored", func() bool { return slices.Contains(kinds(w.recorder.Of(id)), simulator.CommandEnded) })
		if w.module.Body(t.Context()).Locked {
			t.Error("the car was locked")
		}
		// The module of a Kangoo reports the state that it assumes.
		if kind == "RZ" {
			w.await(1, "metric/v/e/locked", "yes")
		} else if w.count("metric/v/e/locked", "yes") > 0 {
			t.Error("v.e.locked is yes although the car is not locked")
		}
	}
}

func TestModule_LockLimitsTheSpeedOfATwizy(t *testing.T) {
	t.Parallel()
	body := simulator.ElectricCar(simulator.Point{Latitude: 48.1374, Longitude: 11.5755})
	body.SpeedKmh, body.Ignition = 60, true
	w := begin(t, Config{Type: "RT", Body: body})
	w.await(onceItListens, "metric/v/type", "RT")
	_, answers := w.order("lock 4711")
	w.await(1, answers, "Error: vehicle could not be locked")
	if kmh := w.module.Body(t.Context()).SpeedKmh; kmh != 60 {
		t.Errorf("a PIN of four digits limits the speed to %v km/h, want no limit", kmh)
	}
	id, answers := w.order("lock 12")
	w.await(1, answers, "Vehicle locked")
	if got := w.module.Body(t.Context()); got.SpeedKmh != 12 || !slices.Contains(kinds(w.recorder.Of(id)), simulator.Harmed) {
		t.Errorf("the speed is %v km/h, recorded %v; want 12 and harm", got.SpeedKmh, kinds(w.recorder.Of(id)))
	}
}

func TestModule_ChecksThePINWhereItsVehicleTypeDoes(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{Type: "KN", PIN: "4711"})
	w.await(onceItListens, "metric/v/e/locked", "no")
	_, answers := w.order("lock 1234")
	w.await(1, answers, "Error: vehicle could not be locked")
	_, answers = w.order("lock 4711")
	w.await(1, answers, "Vehicle locked")
	w.await(1, "metric/v/e/locked", "yes")
}

func TestModule_StopsConnectingAfterARefusedLogin(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{Password: "wrong", Speed: 200})
	eventually(t, "suspended", w.module.Suspended)
	time.Sleep(300 * time.Millisecond) // one minute of the module
	var attempts int
	w.module.Ask(t.Context(), func() { attempts = w.module.attempt })
	if attempts != 1 || w.module.Connected() {
		t.Errorf("%d attempts, want 1 and no connection", attempts)
	}
}

func TestModule_SendsAllAgainAtReconnectsAndEvery20Minutes(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{Speed: 500})
	w.await(onceItListens, "metric/v/p/latitude", "48.137402") // with 32 bits
	w.module.Do(t.Context(), func(_ *simulator.Body, f *Faults) { f.NoFix = true })
	w.await(onceItListens+2, "metric/v/p/latitude", "48.137402") // 40 minutes
	w.module.Cut(t.Context())
	w.await(1, "metric/s/v3/connected", "no") // the last will
	known := w.count("metric/v/type", "NL")
	w.await(known+1, "metric/v/type", "NL")
}

func TestModule_SendsMoreOftenWhileAClientIsConnected(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{Speed: 200})
	w.await(onceItListens, "metric/v/b/soc", decimal(w.module.config.Body.EnergyPercent, 1))
	interval := func() (seconds int) {
		w.module.Ask(t.Context(), func() { w.module.countClients(); seconds = w.module.interval() })
		return seconds
	}
	w.module.Do(t.Context(), func(b *simulator.Body, _ *Faults) { b.Ignition, b.Charging = false, "disconnected" })
	w.send("client/motorpool/active", "1")
	w.await(1, "metric/s/v3/peers", "1")
	if n := interval(); n != whileWatched {
		t.Errorf("the interval is %d s, want that of a connected client", n)
	}
	eventually(t, "the lease expires", func() bool { return interval() == whileIdle })
	w.send("client/motorpool/active", "1")
	eventually(t, "another lease", func() bool { return interval() == whileWatched })
	w.send("client/motorpool/active", "0")
	eventually(t, "the lease is returned", func() bool { return interval() == whileIdle })
}

func TestModule_AlertsAndSettings(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{PIN: "4711"})
	w.await(onceItListens, "metric/v/type", "NL")
	w.module.Alert(t.Context(), "flatbed.moved", "Vehicle is being transported")
	w.await(1, "notify/alert/flatbed/moved", "Vehicle is being transported")
	// The access rules keep this request from every module; the firmware would respond to it.
	w.send("client/motorpool/request/config", "password/pin")
	_, answers := w.order("server v3 update all")
	w.await(1, answers, "Server V3 data update for all metrics has been scheduled")
	if slices.Contains(kinds(w.recorder.Events()), simulator.Harmed) || w.count("client/motorpool/config/password/pin", "4711") > 0 {
		t.Error("the request was delivered")
	}
	w.module.Ask(t.Context(), func() {
		w.module.receive(t.Context(), message{ovms("client/motorpool/request/config"), "password/pin", w.module.attempt})
	})
	if !slices.Contains(kinds(w.recorder.Events()), simulator.Harmed) {
		t.Error("a module that receives the request does not publish its PIN")
	}
}

func TestModule_AbsentReceivesNothing(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{Speed: 300})
	w.await(onceItListens, "metric/v/e/locked", "no")
	w.module.Cut(t.Context())
	w.await(1, "metric/s/v3/connected", "no")
	id, _ := w.order("unlock 4711")
	w.await(2*onceItListens, "metric/v/type", "NL") // the module is connected again
	_, answers := w.order("server v3 update all")
	w.await(1, answers, "Server V3 data update for all metrics has been scheduled")
	if events := w.recorder.Of(id); len(events) > 0 {
		t.Errorf("a command that was sent during the absence was executed: %v", kinds(events))
	}
}

func TestModule_RunsADay(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{Speed: 1500, Day: simulator.NewDay(6*time.Hour + 50*time.Minute)})
	w.await(1, "metric/v/e/on", "no")
	w.await(1, "metric/v/e/on", "yes")
	w.await(1, "metric/v/e/gear", "1")
	before := w.module.Body(t.Context())
	w.await(onceItListens+1, "metric/v/e/on", "no")
	after := w.module.Body(t.Context())
	if after.EnergyPercent >= before.EnergyPercent || after.MileageKm <= before.MileageKm || !after.Locked {
		t.Errorf(
			"after the drive %.1f %% and %.1f km, locked %t; at its beginning %.1f %% and %.1f km", after.EnergyPercent,
			after.MileageKm, after.Locked, before.EnergyPercent, before.MileageKm,
		)
	}
	var turns []string
	for _, e := range w.recorder.Events() {
		if e.Kind == simulator.Turned {
			turns = append(turns, e.Detail)
		}
	}
	// The driver uses the key after the drive.
	if !slices.Equal(turns, []string{simulator.TurnedUnlocked, simulator.TurnedLocked}) {
		t.Errorf("the recorder has %v, want unlocked and locked by the key", turns)
	}
	w.await(1, "metric/s/v3/connected", "no") // the car is in the garage, without a network
}

func TestModule_FaultsOfTheRadio(t *testing.T) {
	t.Parallel()
	w := begin(t, Config{})
	w.await(onceItListens, "metric/v/e/locked", "no")
	set := func(f Faults) { w.module.Do(t.Context(), func(_ *simulator.Body, faults *Faults) { *faults = f }) }
	set(Faults{Duplicate: 1})
	_, answers := w.order("lock 4711")
	w.await(2, answers, "Vehicle locked")
	set(Faults{Drop: 1})
	lost, _ := w.order("unlock 4711")
	eventually(t, "lost", func() (is bool) {
		w.module.Ask(t.Context(), func() { is = w.module.dropped == 1 })
		return is
	})
	const delay = 2 * time.Second // on a busy machine, too, the module restarts within it
	set(Faults{Delay: delay})
	forgotten, _ := w.order("unlock 4711")
	eventually(t, "heard", func() bool { return len(w.recorder.Of(forgotten)) == 1 })
	heard := time.Now()
	w.module.Restart(t.Context())
	set(Faults{})
	w.await(2*onceItListens, "metric/v/type", "NL")
	_, answers = w.order("unlock 4711")
	w.await(1, answers, "Vehicle unlocked")
	// Until a delayed command would have been executed.
	time.Sleep(time.Until(heard.Add(delay + delay/4)))
	if len(w.recorder.Of(lost)) > 0 || len(w.recorder.Of(forgotten)) != 1 {
		t.Errorf(
			"events of the lost command: %v; of the one before the restart: %v", kinds(w.recorder.Of(lost)),
			kinds(w.recorder.Of(forgotten)),
		)
	}
	set(Faults{Offline: true})
	w.await(2, "metric/s/v3/connected", "no")
}
