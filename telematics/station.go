package telematics

// StationID identifies a station.
type StationID int64

// Station is a place of an agency where vehicles are picked up and dropped off.
type Station struct {
	ID        StationID
	AgencyID  AgencyID
	Name      string
	Address   string
	Latitude  float64 // degrees, WGS 84
	Longitude float64 // degrees, WGS 84
}
