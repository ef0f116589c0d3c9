package rental

import "time"

// Rules are an agency's rules for rentals that its clients reserve, start and end themselves. The
// zero value is no rule: see DefaultRules.
type Rules struct {
	// MaxDistance is how many metres a client may be from the vehicle to start; 0: any distance,
	// and a client need not say where it is.
	MaxDistance int
	// ReturnTo is where a vehicle may be returned.
	ReturnTo ReturnPlace
	// StationRadius is how many metres around a station count as the station.
	StationRadius int
	// What must be closed, and where the key must be, for a return. A vehicle that does not
	// report one of these passes.
	ReturnDoors, ReturnWindows, ReturnTrunk bool
	ReturnKey                               string // in or out; empty: anywhere
	// ChargeAtStart is what the start of a rental by a tariff charges.
	ChargeAtStart StartCharging
	// MaxOpenBookings is how many upcoming and active bookings a client may have; 0: any number.
	MaxOpenBookings int
	// MaxUnpaid is how many payments a client may owe before it can book no more; 0: any number.
	MaxUnpaid int
	// HoldFor is how long a booking that begins now is kept for a client that does not start it.
	// Then it lapses: it is cancelled. 0: until its end.
	HoldFor time.Duration
	// MinLength is the shortest time for which a client can book.
	MinLength time.Duration
	// PositionDecimals is to how many decimals of a degree a client sees positions of free
	// vehicles.
	PositionDecimals int
	// MinEnergyPercent is the energy below which a vehicle is not offered.
	MinEnergyPercent int
}

// ReturnPlace is where a vehicle may be returned.
type ReturnPlace string

// Places of return.
const (
	ReturnAnywhere  ReturnPlace = "anywhere"
	ReturnToStation ReturnPlace = "station" // the dropoff station of the booking
	// In an operating area of the agency, and not in one without parking.
	ReturnToArea ReturnPlace = "area"
)

// StartCharging is what the start of a rental charges.
type StartCharging string

// What the start of a rental charges.
const (
	ChargeEstimate StartCharging = "estimate" // the price of the booked time
	ChargeNothing  StartCharging = "nothing"  // only the deposit is held; without one, the estimate
)

// DefaultRules are the rules of an agency that has set none.
var DefaultRules = Rules{
	ReturnTo: ReturnAnywhere, StationRadius: 150, ReturnDoors: true, ReturnWindows: true, ReturnTrunk: true,
	ChargeAtStart: ChargeEstimate, MaxOpenBookings: 5, MaxUnpaid: 1, HoldFor: 15 * time.Minute, MinLength: 15 * time.Minute,
	PositionDecimals: 4, MinEnergyPercent: 10,
}
