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
type Faults = simulator.DeviceFaults

const (
	outputs        = 4
	inboxSize      = 64
	maxKept        = 1000 // records that wait for a connection
	connectTimeout = 10 * time.Second
	publishTimeout = 5 * time.Second
)

// Unit is a unit in its vehicle. Run runs it.
type Unit struct {
	simulator.Device
	config Config
	inbox  chan heard

	// The goroutine of Run owns everything below.
	turned   bool           // as the flight recorder has it
	adapter  simulator.Body // as the adapter last heard it
	counted  int64          // commands that were heard
	dropped  int            // by the radio
	link     paho.Client    // nil: none
	attempt  int
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
	c.Effort = cmp.Or(c.Effort, 300*time.Millisecond)
	c.Moving, c.Stopped = cmp.Or(c.Moving, 10*time.Second), cmp.Or(c.Stopped, 240*time.Second)
	c.KeepAlive, c.Reconnect = cmp.Or(c.KeepAlive, time.Minute), cmp.Or(c.Reconnect, 10*time.Second)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return &Unit{
		Device: simulator.NewDevice(c.Unit, c.Body, c.Day, c.Faults, c.Speed, c.Seed),
		config: c, inbox: make(chan heard, inboxSize), adapter: c.Body,
	}
}

// Run runs the unit until the context ends.
func (u *Unit) Run(ctx context.Context) error {
	tick := time.NewTicker(u.Scaled(time.Second))
	defer tick.Stop()
	defer u.hangUp()
	u.Lived = time.Now()
	u.recordTurn()
	u.record(0)
	u.connect(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-u.Asks:
			do()
		case do := <-u.Events:
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

// Do changes the vehicle, its faults, or both. It blocks until that is done, or the context ends.
func (u *Unit) Do(ctx context.Context, change func(*simulator.Body, *Faults)) {
	u.Ask(ctx, func() {
		change(&u.Car, &u.Faults)
		if u.Faults.Offline {
			u.lost()
		}
		u.observe()
	})
}

// Restart is a reboot of the unit: what it was about to execute is lost. Records are kept, and
// outputs keep their state.
func (u *Unit) Restart(ctx context.Context) {
	u.Ask(ctx, func() {
		u.Boots++
		u.lost()
	})
}

// Cut breaks the connection; the unit connects again.
func (u *Unit) Cut(ctx context.Context) { u.Ask(ctx, u.lost) }

// tick is one second of the unit.
func (u *Unit) tick(ctx context.Context) {
	if u.Live() {
		u.record(towingID)
	}
	now := u.Lived
	u.observe()
	period := u.config.Stopped
	if u.state().moves {
		period = u.config.Moving
	}
	if now.Sub(u.recorded) >= u.Scaled(period) {
		u.record(0)
	}
	switch {
	case u.NoNetwork() && u.link != nil:
		u.lost()
	case u.link == nil && !u.NoNetwork() && now.After(u.redial):
		u.connect(ctx)
	}
}
