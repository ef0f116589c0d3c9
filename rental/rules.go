package rental

// Rules are an agency's rules for rentals that its clients reserve, start and end themselves. The
// zero value is no rule: see DefaultRules. Their JSON is that of the store: decoded over
// DefaultRules, a field that is absent has its default.
type Rules struct {
	// MaxDistance is how many metres a client may be from the vehicle to start; 0: any distance,
	// and a client need not say where it is.
	MaxDistance int `json:"max_distance_m"`
	// ReturnTo is where a vehicle may be returned.
	ReturnTo ReturnPlace `json:"return_to"`
	// StationRadius is how many metres around a station count as the station.
	StationRadius int `json:"station_radius_m"`
	// What must be closed, and where the key must be, for a return. A vehicle that does not
	// report one of these passes.
	ReturnDoors   bool        `json:"return_doors"`
	ReturnWindows bool        `json:"return_windows"`
	ReturnTrunk   bool        `json:"return_trunk"`
	ReturnKey     KeyPosition `json:"return_key"`
	// ChargeAtStart is what the start of a rental by a tariff charges.
	ChargeAtStart StartCharging `json:"charge_at_start"`
	// MaxOpenBookings is how many upcoming and active bookings a client may have; 0: any number.
	MaxOpenBookings int `json:"max_open_bookings"`
	// MaxUnpaid is how many payments a client may owe before it can book no more; 0: any number.
	MaxUnpaid int `json:"max_unpaid"`
	// HoldFor is how long a booking that begins now is kept for a client that does not start it.
	// Then it lapses: it is cancelled. 0: until its end.
	HoldFor Minutes `json:"hold_minutes"`
	// NoShow is how long after its start a booking that a client made for later is kept, if it is
	// not started. Then it lapses, too. 0: until its end.
	NoShow Minutes `json:"no_show_minutes"`
	// MinLength is the shortest time for which a client can book.
	MinLength Minutes `json:"min_length_minutes"`
	// PositionDecimals is to how many decimals of a degree a client sees positions of free
	// vehicles.
	PositionDecimals int `json:"position_decimals"`
	// MinEnergyPercent is the energy below which a vehicle is not offered.
	MinEnergyPercent int `json:"min_energy_percent"`
}

// KeyPosition is where the key must be when a vehicle is returned.
type KeyPosition string

// Positions of the key.
const (
	KeyAnywhere KeyPosition = ""
	KeyIn       KeyPosition = "in"
	KeyOut      KeyPosition = "out"
)

// ReturnPlace is where a vehicle may be returned.
type ReturnPlace string

// Places of return.
const (
	ReturnAnywhere  ReturnPlace = "anywhere"
	ReturnToStation ReturnPlace = "station" // the dropoff station of the booking
	// In an operating area of the agency, and not in one without parking.
	ReturnToArea ReturnPlace = "area"
)

// ReturnPlaces lists every place of return.
var ReturnPlaces = []ReturnPlace{ReturnAnywhere, ReturnToStation, ReturnToArea}

// StartCharging is what the start of a rental charges.
type StartCharging string

// What the start of a rental charges.
const (
	ChargeEstimate StartCharging = "estimate" // the price of the booked time
	// Only the deposit is held; without one, or for longer than a hold lasts, the estimate.
	ChargeNothing StartCharging = "nothing"
)

// StartChargings lists all that a start may charge.
var StartChargings = []StartCharging{ChargeEstimate, ChargeNothing}

// DefaultRules are the rules of an agency that has set none.
var DefaultRules = Rules{
	ReturnTo: ReturnAnywhere, StationRadius: 150, ReturnDoors: true, ReturnWindows: true, ReturnTrunk: true,
	ChargeAtStart: ChargeEstimate, MaxOpenBookings: 5, MaxUnpaid: 1, HoldFor: 15, MinLength: 15,
	PositionDecimals: 4, MinEnergyPercent: 10,
}
