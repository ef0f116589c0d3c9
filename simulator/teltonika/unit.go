// Package teltonika simulates Teltonika units. It is written from their documentation, and not from
// the service's codec.
//
// A unit sends records of all its elements: often while the vehicle moves, rarely while it stands,
// and immediately when ignition, movement, doors or locks change. It keeps records that it cannot
// send, and sends them later, oldest first, with their original times. It executes each command as
// often as it arrives, and its answers name none. One goroutine owns all of it.
package teltonika

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

// Config is one unit and its vehicle.
type Config struct {
	Unit     telematics.Unit // IMEI: user name, client id, and in the topics
	Password string
	Broker   string      // MQTT URL. Defaults to tcp://127.0.0.1:1883
	TLS      *tls.Config // for ssl. Defaults to the system's certificates
	Body     simulator.Body
	Day      *simulator.Day // by which the vehicle lives. Defaults to none: it stays as it is
	Wiring   Wiring         // Defaults to VanWiring
	Faults   Faults
	// Firmware that switches an output again that is as wanted, and says so. Defaults to one that
	// answers "Already set to".
	SwitchesAgain bool
	Seed          uint64 // of everything random in the unit, together with its serial

	Recorder *simulator.Recorder // Defaults to none
	Logger   *slog.Logger        // Defaults to none
	// Speed is how many seconds of the unit pass in one. Defaults to 1
	Speed float64
	// Effort is how long the vehicle takes to lock. Defaults to 300 ms.
	Effort time.Duration
	// Settings, in time of the unit. Default to 10 s, 240 s, 60 s and 10 s
	Moving, Stopped, KeepAlive, Reconnect time.Duration
}

// Wiring has the number of the output, from 1, of each function; zero: none.
type Wiring struct {
	Lock, Unlock int  // while high
	Immobilizer  int  // engaged while high
	Horn         int  // sounds while high
	CAN          bool // an adapter reports locks, doors, fuel and mileage
}

// VanWiring is that of the demo van.
var VanWiring = Wiring{Lock: 1, Unlock: 2, Immobilizer: 3, Horn: 4, CAN: true}

// Faults are the faults of a unit or its vehicle.
type Faults struct {
	Stuck    bool          // the doors do not lock or unlock; the unit answers as ever
	Silent   bool          // commands are neither executed nor answered. Records are sent
	Mute     bool          // answers are lost on the way
	Late     time.Duration // answers come so much later than the execution
	Delay    time.Duration // commands are executed so much later
	Offline  bool          // no network: records are kept
	NoFix    bool          // no satellites
	Disabled bool          // the outputs are disabled in the configuration
	// The adapter reads nothing from the vehicle's bus, and repeats old values.
	Deaf bool
	// An answer is held back for up to this time, so that later ones overtake it.
	Reorder time.Duration
	// The chances that a command is lost, that an answer is lost, and that an answer is sent twice.
	Drop, DropAnswer, Duplicate float64
}

const (
	outputs        = 4
	inboxSize      = 64
	maxKept        = 1000 // records that wait for a connection
	connectTimeout = 10 * time.Second
	publishTimeout = 5 * time.Second
)

// Unit is a unit in its vehicle. Run runs it.
type Unit struct {
	config    Config
	connected atomic.Bool
	asks      chan func()
	inbox     chan heard
	events    chan func()

	// The goroutine of Run owns everything below.
	body     simulator.Body
	turned   bool           // as the flight recorder has it
	adapter  simulator.Body // as the adapter last heard it
	rng      *rand.Rand
	boots    int   // commands of an earlier one are not executed
	counted  int64 // commands that were heard
	dropped  int   // by the radio
	faults   Faults
	link     paho.Client // nil: none
	attempt  int
	lived    time.Time // up to when the vehicle has moved
	redial   time.Time
	recorded time.Time
	seen     state // that the latest record was of
	high     [outputs]bool
	pulses   [outputs]bool // and will change back
	version  [outputs]int  // of an output's state: an older pulse does not end a newer one
	kept     [][]byte
}

type heard struct {
	payload []byte
	attempt int
}

// state is what causes a record when it changes.
type state struct {
	ignition, moves, locked bool
	doors                   int
}

// New assembles a unit; it does nothing before Run.
func New(c Config) *Unit {
	c.Broker = cmp.Or(c.Broker, "tcp://127.0.0.1:1883")
	c.Wiring = cmp.Or(c.Wiring, VanWiring)
	c.Speed = cmp.Or(c.Speed, 1)
	c.Effort = cmp.Or(c.Effort, 300*time.Millisecond)
	c.Moving, c.Stopped = cmp.Or(c.Moving, 10*time.Second), cmp.Or(c.Stopped, 240*time.Second)
	c.KeepAlive, c.Reconnect = cmp.Or(c.KeepAlive, time.Minute), cmp.Or(c.Reconnect, 10*time.Second)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return &Unit{
		config: c, asks: make(chan func()), inbox: make(chan heard, inboxSize), events: make(chan func(), inboxSize),
		body: c.Body, adapter: c.Body, faults: c.Faults, rng: simulator.Random(c.Seed, c.Unit),
	}
}

// Run runs the unit until the context ends.
func (u *Unit) Run(ctx context.Context) error {
	tick := time.NewTicker(u.scaled(time.Second))
	defer tick.Stop()
	defer u.hangUp()
	u.lived = time.Now()
	u.recordTurn()
	u.record(0)
	u.connect(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-u.asks:
			do()
		case do := <-u.events:
			do()
		case h := <-u.inbox:
			if h.attempt == u.attempt {
				u.receive(ctx, h.payload)
			}
		case <-tick.C:
			u.tick(ctx)
		}
	}
}

// Connected reports whether the unit is connected.
func (u *Unit) Connected() bool { return u.connected.Load() }

// Do changes the vehicle, its faults, or both. It blocks until that is done, or the context ends.
func (u *Unit) Do(ctx context.Context, change func(*simulator.Body, *Faults)) {
	u.ask(ctx, func() {
		change(&u.body, &u.faults)
		if u.faults.Offline {
			u.lost()
		}
		u.observe()
	})
}

// Body returns the vehicle as it is, whatever the unit reports.
func (u *Unit) Body(ctx context.Context) (b simulator.Body) {
	u.ask(ctx, func() { b = u.body })
	return b
}

// Restart is a reboot of the unit: what it was about to execute is lost. Records are kept, and
// outputs keep their state.
func (u *Unit) Restart(ctx context.Context) {
	u.ask(ctx, func() {
		u.boots++
		u.lost()
	})
}

// Phase returns the phase of the vehicle's day; empty: it has none.
func (u *Unit) Phase(ctx context.Context) (p simulator.Phase) {
	u.ask(ctx, func() {
		if u.config.Day != nil {
			p = u.config.Day.Phase()
		}
	})
	return p
}

// Cut breaks the connection; the unit connects again.
func (u *Unit) Cut(ctx context.Context) { u.ask(ctx, u.lost) }

func (u *Unit) ask(ctx context.Context, do func()) {
	done := make(chan struct{})
	select {
	case u.asks <- func() { do(); close(done) }:
		<-done
	case <-ctx.Done():
	}
}

// after makes Run call a function a while later.
func (u *Unit) after(ctx context.Context, d time.Duration, do func()) {
	if d <= 0 {
		do()
		return
	}
	time.AfterFunc(d, func() { u.later(ctx, do) })
}

func (u *Unit) later(ctx context.Context, do func()) {
	select {
	case u.events <- do:
	case <-ctx.Done():
	}
}

// scaled converts a duration of the unit to real time.
func (u *Unit) scaled(d time.Duration) time.Duration {
	return time.Duration(float64(d) / u.config.Speed)
}

// tick is one second of the unit.
func (u *Unit) tick(ctx context.Context) {
	now := time.Now()
	u.live(time.Duration(float64(now.Sub(u.lived)) * u.config.Speed))
	u.lived = now
	u.observe()
	period := u.config.Stopped
	if u.state().moves {
		period = u.config.Moving
	}
	if now.Sub(u.recorded) >= u.scaled(period) {
		u.record(0)
	}
	switch {
	case u.noNetwork() && u.link != nil:
		u.lost()
	case u.link == nil && !u.noNetwork() && now.After(u.redial):
		u.connect(ctx)
	}
}

// live advances the vehicle by d.
func (u *Unit) live(d time.Duration) {
	if u.config.Day == nil {
		u.body.Advance(d, u.rng)
		return
	}
	if u.config.Day.Pass(&u.body, d, u.rng) {
		u.record(towingID)
	}
}

func (u *Unit) in(p simulator.Phase) bool { return u.config.Day != nil && u.config.Day.Phase() == p }

func (u *Unit) noNetwork() bool { return u.faults.Offline || u.in(simulator.Away) }

func (u *Unit) deaf() bool { return u.faults.Deaf || u.in(simulator.Stale) }

// blind reports whether there are no satellites: in a garage, or because the receiver sleeps.
func (u *Unit) blind() bool { return u.faults.NoFix || u.in(simulator.Away) || u.in(simulator.Asleep) }
