package telematics

import "math"

// StationWithin is how far from its agency's station a vehicle may stand, in metres, to have the
// station's address (httpapi/openapi.yaml).
const StationWithin = 150

// earthRadius is the mean radius R1 of the Earth, in metres (H. Moritz, Geodetic
// Reference System 1980, Journal of Geodesy 74, 2000).
const earthRadius = 6_371_008.8

// Position is a place on the Earth, in degrees, WGS 84.
type Position struct{ Latitude, Longitude float64 }

// Metres returns the great-circle distance to another position, by the haversine
// formula, which is exact for small distances too (R. W. Sinnott, Virtues of the
// Haversine, Sky and Telescope 68, 1984). The Earth is a sphere here: that is wrong by
// half a percent at most, less than a receiver's own error.
func (p Position) Metres(to Position) float64 {
	φ1, φ2 := radians(p.Latitude), radians(to.Latitude)
	Δφ, Δλ := math.Sin((φ2-φ1)/2), math.Sin(radians(to.Longitude-p.Longitude)/2)
	h := Δφ*Δφ + math.Cos(φ1)*math.Cos(φ2)*Δλ*Δλ
	return 2 * earthRadius * math.Asin(math.Sqrt(min(1, h)))
}

// WholeMetres is Metres, rounded up.
func (p Position) WholeMetres(to Position) int { return int(math.Ceil(p.Metres(to))) }

func radians(degrees float64) float64 { return degrees * math.Pi / 180 }

// Around returns a box that contains all places within a distance, in metres. It crosses the 180th
// meridian where West is more than East.
func (p Position) Around(metres int64) Box {
	north := float64(metres) / earthRadius * 180 / math.Pi * 1.001
	box := Box{West: -180, South: max(p.Latitude-north, -90), East: 180, North: min(p.Latitude+north, 90)}
	// A circle is widest towards the nearer pole.
	east := north / math.Cos(radians(max(-box.South, box.North)))
	if east >= 180 || box.South == -90 || box.North == 90 {
		return box
	}
	box.West, box.East = p.Longitude-east, p.Longitude+east
	if box.West < -180 {
		box.West += 360
	}
	if box.East > 180 {
		box.East -= 360
	}
	return box
}

// Position returns where the station is.
func (s Station) Position() Position { return Position{s.Latitude, s.Longitude} }

// Position returns the vehicle's position, or false if it is not known.
func (s Snapshot) Position() (Position, bool) {
	latitude, longitude := s.Number(Latitude), s.Number(Longitude)
	if latitude == nil || longitude == nil {
		return Position{}, false
	}
	return Position{*latitude, *longitude}, true
}

// NearestStation returns the station that is nearest to a position, or false if none is
// within the distance, in metres.
func NearestStation(stations []Station, to Position, within int) (Station, bool) {
	var nearest Station
	found, closest := false, float64(within)
	degrees := closest / earthRadius * 180 / math.Pi
	for i := range stations {
		s := &stations[i]
		// Most stations are far away, which their latitude alone shows.
		if math.Abs(s.Latitude-to.Latitude) > degrees*1.001 {
			continue
		}
		if d := to.Metres(s.Position()); d <= closest {
			nearest, closest, found = *s, d, true
		}
	}
	return nearest, found
}

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
