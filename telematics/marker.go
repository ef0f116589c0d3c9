package telematics

import "time"

// Marker is a vehicle as a list of all vehicles and a map show it.
type Marker struct {
	ID           VehicleID
	Agency       AgencyID
	Plate        string
	Brand        string
	Model        string
	Unit         Unit // empty: none
	Powertrain   Powertrain
	Status       VehicleStatus
	Connectivity PresenceStatus
	Position     *Position // nil: never reported, or no longer known
	LocatedAt    time.Time // zero: as above
	Locked       *bool     // nil: as above
	LockedAt     time.Time // zero: as above
	// In percent, of the battery of an electric vehicle, else of the tank; nil: as above.
	Energy     *float64
	EnergyAt   time.Time // zero: as above
	Charging   *bool     // nil: as above
	ChargingAt time.Time // zero: as above
	LastSeen   time.Time // any message of the unit; zero: never
}

// Box is an area between meridians and parallels, in degrees. Where West is greater than East it
// crosses the 180th meridian.
type Box struct{ West, South, East, North float64 }

// MarkerQuery selects markers. Zero fields select everything.
type MarkerQuery struct {
	Agency AgencyID
	Box    *Box // only vehicles with a position in it
}
