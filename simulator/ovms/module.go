// Package ovms simulates OVMS v3 modules: what the firmware does, quirks included, written from its
// source (components/ovms_server_v3, vehicle and vehicle_*) and not from the service's codec.
//
// A module sends metrics one by one as text, retained, at QoS 0: those that have changed at an
// interval, and all of them, stale ones too, every 20 minutes and at each connection. It keeps its
// MQTT session, and executes each command line as often as it arrives. One goroutine owns all of
// it.
package ovms

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"sync/atomic"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/simulator"
	"motorpool/telematics"
)

// Config is one module and its car. The zero value has no broker account.
type Config struct {
	Unit     telematics.Unit // user name, vehicle id and client id
	Password string
	Broker   string      // MQTT URL. Defaults to tcp://127.0.0.1:1883
	TLS      *tls.Config // of the connection. Defaults to none
	Type     string      // vehicle type. Defaults to NL, a Nissan Leaf
	PIN      string      // its setting password/pin. Defaults to none
	Firmware string      // Defaults to 3.3.006
	Body     simulator.Body
	Day      *simulator.Day // by which the car lives. Defaults to none: it stays as it is
	Faults   Faults
	Seed     uint64 // of everything random in the module, together with its serial

	Recorder *simulator.Recorder // Defaults to none
	Logger   *slog.Logger        // Defaults to none
	// Speed is how many seconds of the module pass in one. Defaults to 1
	Speed float64
	// Effort is how long the car takes to lock. Defaults to 300 ms.
	Effort time.Duration
	// StableWait is how long the network has to be stable before a connection. Defaults to 10 s
	StableWait time.Duration
}

// Faults are the faults of a module or its car.
type Faults = simulator.DeviceFaults

// Settings and constants of the firmware, in seconds of the module (ovms_server_v3.cpp:
// constructor, MongooseCallback, AddClient).
const (
	sendAllEvery   = 1200
	whileOn        = 5
	whileCharging  = 10
	whileWatched   = 10
	whileIdle      = 300 // as motorpool unit add has it configured, instead of 600
	leaseSeconds   = 120
	retryRefused   = 30
	retryLost      = 60
	freshEnough    = 30 // all metrics
	fresh          = 20 // those that have changed
	connectTimeout = 10 * time.Second
	keepAlive      = time.Minute // updatetime.keepalive; the firmware's is 29 min
)

// Module is a module in its car. Run runs it.
type Module struct {
	simulator.Device
	config    Config
	suspended atomic.Bool
	inbox     chan message

	// The goroutine of Run owns everything below.
	turned   bool        // as the flight recorder has it
	heard    int64       // command lines
	dropped  int         // by the radio
	link     paho.Client // nil: none
	cut      func()
	attempt  int
	seconds  int               // since the start
	retry    int               // seconds to the next attempt; negative: never again
	sent     map[string]string // metrics, as they were sent last
	sendAll  bool
	lastAll  int
	lastSent int
	clients  map[string]int    // when the leases end
	locked   bool              // v.e.locked, which the module may believe wrongly
	told     map[string]string // the metrics of happenings, when they were looked at last

	// A tick after the login the module subscribes, and sends all metrics again (Ticker1).
	mustSubscribe bool
}

type message struct {
	topic, payload string
	attempt        int
}

const inboxSize = 64

// New assembles a module; it does nothing before Run.
func New(c Config) *Module {
	c.Broker = cmp.Or(c.Broker, "tcp://127.0.0.1:1883")
	c.Type = cmp.Or(c.Type, "NL")
	c.Firmware = cmp.Or(c.Firmware, "3.3.006")
	c.Effort = cmp.Or(c.Effort, 300*time.Millisecond)
	c.StableWait = cmp.Or(c.StableWait, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Module{
		Device: simulator.NewDevice(c.Unit, c.Body, c.Day, c.Faults, c.Speed, c.Seed),
		config: c, inbox: make(chan message, inboxSize), cut: func() {}, sent: map[string]string{}, told: map[string]string{},
		clients: map[string]int{}, locked: c.Body.Locked && c.Type != "RT",
	}
}

// Run runs the module until the context ends, and then cuts its power: the MQTT broker publishes
// its last will.
func (m *Module) Run(ctx context.Context) error {
	tick := time.NewTicker(m.Scaled(time.Second))
	defer tick.Stop()
	defer m.hangUp()
	m.Lived = time.Now()
	m.retry = m.stable()
	m.recordTurn()
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-m.Asks:
			do()
		case do := <-m.Events:
			do()
		case heard := <-m.inbox:
			m.receive(ctx, heard)
		case <-tick.C:
			m.tick(ctx)
		}
	}
}

// Suspended reports whether the module has stopped connecting: its login was refused, and only a
// change of its configuration ends that.
func (m *Module) Suspended() bool { return m.suspended.Load() }

// Do changes the car, its faults, or both. It blocks until it is done, or the context ends.
func (m *Module) Do(ctx context.Context, change func(*simulator.Body, *Faults)) {
	m.Ask(ctx, func() {
		change(&m.Car, &m.Faults)
		m.observe()
		m.react()
		switch {
		case m.Faults.Offline && m.link != nil:
			m.lost(retryLost)
		case !m.Faults.Offline && m.link == nil && m.retry > 0:
			m.retry = 1
		}
	})
}

// Restart is a reboot of the module: what it was about to execute is lost.
func (m *Module) Restart(ctx context.Context) {
	m.Ask(ctx, func() {
		m.Boots++
		m.sent, m.clients = map[string]string{}, map[string]int{}
		m.seconds, m.lastAll, m.lastSent = 0, 0, 0
		if m.retry >= 0 {
			m.lost(m.stable())
		}
	})
}

// stable is how many seconds the network has to be stable before a connection.
func (m *Module) stable() int { return max(1, int(m.config.StableWait/time.Second)) }

// Cut breaks the connection as a dead radio does; the module connects again a minute later.
func (m *Module) Cut(ctx context.Context) { m.Ask(ctx, func() { m.lost(retryLost) }) }

// tick is one second of the module (Ticker1).
func (m *Module) tick(ctx context.Context) {
	m.seconds++
	m.live()
	if m.link == nil {
		if m.retry > 0 && !m.NoNetwork() {
			if m.retry--; m.retry == 0 {
				m.connect(ctx)
			}
		}
		return
	}
	m.countClients()
	m.react()
	if m.mustSubscribe {
		m.mustSubscribe, m.sendAll = false, true
		m.subscribe()
	}
	switch {
	case m.sendAll, m.seconds > m.lastAll+sendAllEvery:
		m.transmitAll()
	case m.seconds > m.lastSent+m.interval():
		m.transmitModified()
	}
}

// live advances the car to now.
func (m *Module) live() {
	if m.Live() {
		m.raise("flatbed.moved", "Vehicle is being transported")
	}
	if m.config.Day == nil {
		return
	}
	m.observe()
	if m.NoNetwork() && m.link != nil {
		m.lost(retryLost)
	}
}

func (m *Module) interval() int {
	switch {
	case m.Car.Ignition:
		return whileOn
	case m.Car.Charging == "charging":
		return whileCharging
	case len(m.clients) > 0:
		return whileWatched
	}
	return whileIdle
}

// countClients ends leases that were not renewed (CountClients).
func (m *Module) countClients() {
	watched := len(m.clients)
	for client, ends := range m.clients {
		if ends < m.seconds {
			delete(m.clients, client)
		}
	}
	m.watchers(watched)
}

// Watchers returns how many clients watch the module.
func (m *Module) Watchers(ctx context.Context) (n int) {
	m.Ask(ctx, func() {
		m.countClients()
		n = len(m.clients)
	})
	return n
}

// watch begins, renews or ends a lease (AddClient, RemoveClient).
func (m *Module) watch(client, payload string) {
	watched := len(m.clients)
	if payload == "" || payload == "0" {
		delete(m.clients, client)
	} else {
		m.clients[client] = m.seconds + leaseSeconds
	}
	m.watchers(watched)
}

// watchers handles a change of the number of clients: modified metrics are then sent soon
// (EventListener; CountClients).
func (m *Module) watchers(before int) {
	switch len(m.clients) {
	case before:
		return
	case 0:
		m.transmitModified()
		m.signal("app.disconnected")
	default:
		m.greet()
		m.signal("app.connected")
	}
	m.lastSent = m.seconds - m.interval()
}

// greet is what app.connected and server.v3.connected do. At a login it comes before the
// subscriptions: the module reads as connected up to a second before it hears anything
// (EventListener).
func (m *Module) greet() {
	switch {
	case m.seconds-m.lastAll > freshEnough || m.lastAll == 0:
		m.transmitAll()
	case m.seconds-m.lastSent > fresh:
		m.transmitModified()
	}
}
