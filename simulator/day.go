package simulator

import (
	"math/rand/v2"
	"time"

	"motorpool/telematics"
)

// Phase is what a car does at a time of its day.
type Phase string

const (
	Asleep   Phase = "asleep"   // parked at night; nothing on its bus, no satellites
	Parked   Phase = "parked"   //
	Driving  Phase = "driving"  // unlocked with the key
	Charging Phase = "charging" // plugged in; a car without a plug is parked
	Away     Phase = "away"     // in a garage, without network and satellites
	Stale    Phase = "stale"    // the unit reads nothing from its bus, and repeats old values
)

// phases begin at hours of the day, in order.
var phases = []struct {
	from float64
	Phase
}{
	{0, Asleep},
	{5, Parked},
	{7, Driving},
	{7.75, Parked},
	{9, Away},
	{10.5, Parked},
	{12, Driving},
	{12.5, Parked},
	{14, Stale},
	{15.5, Parked},
	{17, Driving},
	{18, Parked},
	{20, Charging},
}

// Phases lists the phases of a day, each once.
var Phases = []Phase{Asleep, Parked, Driving, Charging, Away, Stale}

const (
	// towedAt is when an alarm is raised, each day.
	towedAt   = 3 * time.Hour
	dayLength = 24 * time.Hour
	cruiseKmh = 45
)

// Day simulates the day of a car: it drives, parks, charges and sleeps. It is not safe for
// concurrent use.
type Day struct {
	clock time.Duration // since the first midnight
	phase Phase
}

// NewDay returns a day that begins at a time of day.
func NewDay(begin time.Duration) *Day { return &Day{clock: begin % dayLength} }

// Phase returns the present phase; empty before the first Pass.
func (d *Day) Phase() Phase { return d.phase }

// Pass advances the day and the car by dt, and reports whether the car is towed away meanwhile.
func (d *Day) Pass(b *Body, dt time.Duration, rng *rand.Rand) (towed bool) {
	before := d.clock
	d.clock += dt
	if next := phaseAt(d.clock % dayLength); next != d.phase {
		d.phase = next
		next.begin(b)
	}
	if d.phase == Driving && b.EngineRuns() {
		b.SpeedKmh = min(90, max(10, b.SpeedKmh+rng.NormFloat64()*2))
	}
	b.Advance(dt, rng)
	return (before+dayLength-towedAt)/dayLength != (d.clock+dayLength-towedAt)/dayLength
}

func phaseAt(t time.Duration) Phase {
	now := phases[0].Phase
	for _, p := range phases {
		if t.Hours() >= p.from {
			now = p.Phase
		}
	}
	return now
}

// begin changes the car as its driver does when the phase begins. The key locks and unlocks without
// the unit. With the immobilizer engaged the car does not start.
func (p Phase) begin(b *Body) {
	drove := b.Ignition
	b.Charging = ""
	if b.Powertrain.PlugsIn() {
		b.Charging = "disconnected"
	}
	switch {
	case p == Driving && b.Immobilizer != Engaged:
		b.Ignition, b.KeyIn, b.Gear, b.ParkBrake, b.SpeedKmh = true, true, "D", false, cruiseKmh
		b.Locked, b.Fastened = false, []telematics.Field{telematics.SeatbeltDriver}
		return
	case p == Charging && b.Powertrain.PlugsIn():
		b.Charging = "charging"
	}
	b.Ignition, b.KeyIn, b.Gear, b.ParkBrake, b.SpeedKmh, b.Fastened = false, false, "P", true, 0, nil
	if drove {
		b.Locked = true
		b.settle()
	}
}
