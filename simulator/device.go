package simulator

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"motorpool/telematics"
)

// DeviceFaults are the faults of a bought device or its vehicle.
type DeviceFaults struct {
	Stuck  bool          // the vehicle does not lock or unlock; the device answers as ever
	Silent bool          // commands are neither executed nor answered. Reports are sent
	Mute   bool          // answers are lost on the way
	Delay  time.Duration // commands are executed so much later
	Late   time.Duration // answers come so much later than the execution
	// An answer is held back for up to this time, so that later ones overtake it.
	Reorder time.Duration
	// The chances that a command is lost, that an answer is lost, and that an answer is sent twice.
	Drop, DropAnswer, Duplicate float64
	// No network.
	Offline bool
	// No satellites.
	NoFix bool
	// The outputs of a Teltonika unit are disabled in its configuration.
	Disabled bool
}

// AnswerDelay returns when an answer is sent, after the execution.
func (f DeviceFaults) AnswerDelay(rng *rand.Rand) time.Duration {
	if f.Reorder > 0 {
		return f.Late + time.Duration(rng.Int64N(int64(f.Reorder)))
	}
	return f.Late
}

// Device is what simulated bought devices have in common, whatever they speak. The goroutine of
// their Run owns the exported fields, and calls what comes in Asks and Events.
type Device struct {
	Car    Body
	Faults DeviceFaults
	Rand   *rand.Rand
	Boots  int // commands of an earlier one are not executed
	Lived  time.Time
	Online atomic.Bool
	Asks   chan func()
	Events chan func()

	day   *Day
	speed float64
}

// NewDevice returns a device whose time passes at a speed (zero: 1), and whose vehicle lives by a
// day, if there is one.
func NewDevice(unit telematics.Unit, car Body, day *Day, f DeviceFaults, speed float64, seed uint64) Device {
	return Device{
		Car: car, Faults: f, Rand: Random(seed, unit), Asks: make(chan func()), Events: make(chan func(), deviceInbox),
		day: day, speed: cmp.Or(speed, 1),
	}
}

const deviceInbox = 64

// Connected reports whether the device is connected.
func (d *Device) Connected() bool { return d.Online.Load() }

// Body returns the vehicle as it is, whatever the device reports.
func (d *Device) Body(ctx context.Context) (b Body) {
	d.Ask(ctx, func() { b = d.Car })
	return b
}

// Phase returns the phase of the vehicle's day; empty: it has none.
func (d *Device) Phase(ctx context.Context) (p Phase) {
	d.Ask(ctx, func() {
		if d.day != nil {
			p = d.day.Phase()
		}
	})
	return p
}

// Ask makes Run call a function, and blocks until it has, or the context ends.
func (d *Device) Ask(ctx context.Context, do func()) {
	done := make(chan struct{})
	select {
	case d.Asks <- func() { do(); close(done) }:
		<-done
	case <-ctx.Done():
	}
}

// After makes Run call a function a while later. Without a wait, it calls the function now.
func (d *Device) After(ctx context.Context, wait time.Duration, do func()) {
	if wait <= 0 {
		do()
		return
	}
	time.AfterFunc(wait, func() { d.Later(ctx, do) })
}

// Execute makes Run call a function that executes a command, as late as the faults say; not if the
// device restarts before.
func (d *Device) Execute(ctx context.Context, do func()) {
	boot := d.Boots
	d.After(ctx, d.Faults.Delay, func() {
		if boot == d.Boots {
			do()
		}
	})
}

// Answer calls a function that publishes an answer, unless it is lost; twice, if it is duplicated.
func (d *Device) Answer(publish func()) {
	if d.Faults.Mute || d.Rand.Float64() < d.Faults.DropAnswer {
		return
	}
	publish()
	if d.Rand.Float64() < d.Faults.Duplicate {
		publish()
	}
}

// TurnOf returns the detail of the event that a vehicle was locked or unlocked.
func TurnOf(locked bool) string {
	if locked {
		return TurnedLocked
	}
	return TurnedUnlocked
}

// Later makes Run call a function soon.
func (d *Device) Later(ctx context.Context, do func()) {
	select {
	case d.Events <- do:
	case <-ctx.Done():
	}
}

// Scaled converts a duration of the device to real time.
func (d *Device) Scaled(t time.Duration) time.Duration { return time.Duration(float64(t) / d.speed) }

// Live advances the vehicle to now, and reports whether it begins to be towed.
func (d *Device) Live() (towed bool) {
	now := time.Now()
	passed := time.Duration(float64(now.Sub(d.Lived)) * d.speed)
	d.Lived = now
	if d.day == nil {
		d.Car.Advance(passed, d.Rand)
		return false
	}
	return d.day.Pass(&d.Car, passed, d.Rand)
}

func (d *Device) in(p Phase) bool { return d.day != nil && d.day.Phase() == p }

// NoNetwork reports whether there is no network.
func (d *Device) NoNetwork() bool { return d.Faults.Offline || d.in(Away) }

// Deaf reports whether the device reads nothing from its vehicle, and keeps old values.
func (d *Device) Deaf() bool { return d.in(Stale) }

// Blind reports whether there are no satellites: in a garage, or because the receiver sleeps.
func (d *Device) Blind() bool { return d.Faults.NoFix || d.in(Away) || d.in(Asleep) }
