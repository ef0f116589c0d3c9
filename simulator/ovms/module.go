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
	"math/rand/v2"
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
	// KeepAlive is the setting updatetime.keepalive. Defaults to 60 s, the firmware's to 29 min
	KeepAlive time.Duration
	// StableWait is how long the network has to be stable before a connection. Defaults to 10 s
	StableWait time.Duration
}

// Faults are the faults of a module or its car.
type Faults struct {
	// The car ignores the frames on its bus; the module answers as ever.
	Stuck bool
	// The shell hangs: command lines are neither executed nor answered. Metrics are sent.
	Silent bool
	// Answers are lost on the way.
	Mute bool
	// Delay delays the execution of a command line, and its answer.
	Delay time.Duration
	// An answer is held back for up to this time, so that later ones overtake it.
	Reorder time.Duration
	// The chances that a command line is lost, that an answer is lost, and that an answer is sent
	// twice.
	Drop, DropAnswer, Duplicate float64
	// No network.
	Offline bool
	// The module reads nothing from the bus: v.e.locked keeps its value, and is sent again.
	Deaf bool
	// No GPS fix: the position and its time stay as they are.
	NoFix bool
}

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
)

// Module is a module in its car. Run runs it.
type Module struct {
	config    Config
	connected atomic.Bool
	suspended atomic.Bool
	asks      chan func()
	inbox     chan message
	events    chan func()

	// The goroutine of Run owns everything below.
	body     simulator.Body
	turned   bool // as the flight recorder has it
	lived    time.Time
	rng      *rand.Rand
	faults   Faults
	boots    int         // command lines of an earlier one are not executed
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
	limitKmh int               // of a Twizy; 0: none
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
	c.Speed = cmp.Or(c.Speed, 1)
	c.Effort = cmp.Or(c.Effort, 300*time.Millisecond)
	c.KeepAlive = cmp.Or(c.KeepAlive, time.Minute)
	c.StableWait = cmp.Or(c.StableWait, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Module{
		config: c, asks: make(chan func()), inbox: make(chan message, inboxSize), events: make(chan func(), inboxSize),
		body: c.Body, faults: c.Faults, cut: func() {}, sent: map[string]string{}, told: map[string]string{},
		clients: map[string]int{}, locked: c.Body.Locked && c.Type != "RT", rng: simulator.Random(c.Seed, c.Unit),
	}
}

// Run runs the module until the context ends, and then cuts its power: the MQTT broker publishes
// its last will.
func (m *Module) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Duration(float64(time.Second) / m.config.Speed))
	defer tick.Stop()
	defer m.hangUp()
	m.lived = time.Now()
	m.retry = m.stable()
	m.recordTurn()
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-m.asks:
			do()
		case do := <-m.events:
			do()
		case heard := <-m.inbox:
			m.receive(ctx, heard)
		case <-tick.C:
			m.tick(ctx)
		}
	}
}

// Connected reports whether the module is connected.
func (m *Module) Connected() bool { return m.connected.Load() }

// Suspended reports whether the module has stopped connecting: its login was refused, and only a
// change of its configuration ends that.
func (m *Module) Suspended() bool { return m.suspended.Load() }

// Do changes the car, its faults, or both. It blocks until it is done, or the context ends.
func (m *Module) Do(ctx context.Context, change func(*simulator.Body, *Faults)) {
	m.ask(ctx, func() {
		change(&m.body, &m.faults)
		m.observe()
		m.react()
		switch {
		case m.faults.Offline && m.link != nil:
			m.lost(retryLost)
		case !m.faults.Offline && m.link == nil && m.retry > 0:
			m.retry = 1
		}
	})
}

// Body returns the car as it is, whatever the module reports.
func (m *Module) Body(ctx context.Context) (b simulator.Body) {
	m.ask(ctx, func() { b = m.body })
	return b
}

// Phase returns the phase of the car's day; empty: it has none.
func (m *Module) Phase(ctx context.Context) (p simulator.Phase) {
	m.ask(ctx, func() {
		if m.config.Day != nil {
			p = m.config.Day.Phase()
		}
	})
	return p
}

// LimitKmh returns the speed to which a Twizy is limited; 0: it is not.
func (m *Module) LimitKmh(ctx context.Context) (kmh int) {
	m.ask(ctx, func() { kmh = m.limitKmh })
	return kmh
}

// Restart is a reboot of the module: what it was about to execute is lost.
func (m *Module) Restart(ctx context.Context) {
	m.ask(ctx, func() {
		m.boots++
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
func (m *Module) Cut(ctx context.Context) { m.ask(ctx, func() { m.lost(retryLost) }) }

func (m *Module) ask(ctx context.Context, do func()) {
	done := make(chan struct{})
	select {
	case m.asks <- func() { do(); close(done) }:
		<-done
	case <-ctx.Done():
	}
}

// after makes Run call a function a while later.
func (m *Module) after(ctx context.Context, d time.Duration, do func()) {
	time.AfterFunc(d, func() {
		select {
		case m.events <- do:
		case <-ctx.Done():
		}
	})
}

// tick is one second of the module (Ticker1).
func (m *Module) tick(ctx context.Context) {
	m.seconds++
	m.live(ctx)
	if m.link == nil {
		if m.retry > 0 && !m.noNetwork() {
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
func (m *Module) live(ctx context.Context) {
	now := time.Now()
	passed := time.Duration(float64(now.Sub(m.lived)) * m.config.Speed)
	m.lived = now
	if m.config.Day == nil {
		m.body.Advance(passed, m.rng)
		return
	}
	if m.config.Day.Pass(&m.body, passed, m.rng) {
		m.raise("flatbed.moved", "Vehicle is being transported")
	}
	m.observe()
	if m.noNetwork() && m.link != nil {
		m.lost(retryLost)
	}
}

func (m *Module) in(p simulator.Phase) bool { return m.config.Day != nil && m.config.Day.Phase() == p }

func (m *Module) noNetwork() bool { return m.faults.Offline || m.in(simulator.Away) }

// deaf reports whether the module reads nothing from its car, and keeps old values.
func (m *Module) deaf() bool { return m.faults.Deaf || m.in(simulator.Stale) }

// blind reports whether there are no satellites.
func (m *Module) blind() bool {
	return m.faults.NoFix || m.in(simulator.Away) || m.in(simulator.Asleep)
}

func (m *Module) interval() int {
	switch {
	case m.body.Ignition:
		return whileOn
	case m.body.Charging == "charging":
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
