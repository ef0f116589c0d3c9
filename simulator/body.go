package simulator

import (
	"slices"

	"motorpool/telematics"
)

// Immobilizer is the state of an immobilizer.
type Immobilizer string

const (
	Released Immobilizer = "released"
	Armed    Immobilizer = "armed" // engages when the ignition is switched off [CMD-7]
	Engaged  Immobilizer = "engaged"
)

// Body is a vehicle without its telematics unit: its true state, whatever the unit reports. Report
// returns its state in the fields of the protocol; Advance moves it and drains its batteries.
type Body struct {
	Powertrain telematics.Powertrain

	Latitude  float64
	Longitude float64
	Heading   float64 // degrees
	Route     []Point // driven round and round. Defaults to straight ahead
	along     float64 // kilometres from the first point of Route

	SpeedKmh     float64
	SpeedUnknown bool // the speed sensor has failed
	MileageKm    float64
	Ignition     bool
	Gear         string // P, R, N or D
	ParkBrake    bool
	Immobilizer  Immobilizer // empty: Released
	KeyIn        bool

	EnergyPercent float64 // battery of an electric car, fuel of any other
	ChargePercent float64 // traction battery of a plug-in hybrid
	FullRangeKm   float64 // with all of EnergyPercent; a plug-in hybrid drives on fuel here
	Charging      string  // with a plug only: charging, disconnected or fault
	ChargePerHour float64 // percent
	OnboardV      float64 // the 12 V battery, at rest

	Locked     bool
	Opened     []telematics.Field // doors, windows and sunroof that are not closed
	Fastened   []telematics.Field // seatbelts
	HasTopCase bool
	TopCase    bool // open

	DTCs         []string
	WarningLamps []string
	ServiceDueKm float64
	OilLife      float64 // percent

	RSRP     float64 // dBm; wanders about SiteRSRP
	SiteRSRP float64 // of the cell, where the car is
	Firmware string

	// Unreported lists what the vehicle has no sensor or no bus for: fields, or groups of fields
	// such as "telemetry.windows".
	Unreported []telematics.Field
}

// EngineRuns reports whether the engine, or an electric drive, is running. With the immobilizer
// engaged the ignition can be switched on, but nothing starts.
func (b *Body) EngineRuns() bool { return b.Ignition && b.Immobilizer != Engaged }

// stands reports whether the vehicle is known to stand, or crawl [CMD-7].
func (b *Body) stands() bool { return !b.SpeedUnknown && b.SpeedKmh <= telematics.MovingKmh }

// isMoving reports whether the vehicle is known to move.
func (b *Body) isMoving() bool { return !b.SpeedUnknown && b.SpeedKmh > telematics.MovingKmh }

// forbids returns the detail of the vehicle's state that forbids an action now; empty: none does
// [CMD-7].
func (b *Body) forbids(a telematics.Action) string {
	switch {
	case a.Immobilizes() && !b.stands(): // an unknown speed counts as moving
		return telematics.Moving
	case a.Opens() && b.isMoving():
		return telematics.Moving
	case (a == telematics.Lock || a == telematics.LockAndDisableDriving) && b.doorOpen():
		return telematics.DoorOpen
	}
	return ""
}

func (b *Body) doorOpen() bool {
	return slices.ContainsFunc(doors, func(door telematics.Field) bool { return slices.Contains(b.Opened, door) })
}

// do makes the movement of a simple action, if it has one.
func (b *Body) do(a telematics.Action) {
	if move := effects[a].move; move != nil {
		move(b)
	}
}

func (b *Body) release() { b.Immobilizer = Released }

func (b *Body) immobilize() {
	if b.Immobilizer == Released { // an engaged one stays so, whatever the ignition
		b.Immobilizer = Armed
	}
	b.settle()
}

// settle engages an armed immobilizer once the ignition is off and the vehicle stands. It never
// stops a running engine [CMD-7].
func (b *Body) settle() {
	if b.Immobilizer == Armed && !b.Ignition && b.stands() {
		b.Immobilizer = Engaged
	}
}

// clone returns a deep copy.
func (b *Body) clone() Body {
	c := *b
	c.Route = slices.Clone(b.Route)
	c.Opened = slices.Clone(b.Opened)
	c.Fastened = slices.Clone(b.Fastened)
	c.DTCs = slices.Clone(b.DTCs)
	c.WarningLamps = slices.Clone(b.WarningLamps)
	c.Unreported = slices.Clone(b.Unreported)
	return c
}
