package telematics

import (
	"math"
	"testing"
)

// north returns the position some metres to the north.
func north(p Position, metres float64) Position {
	return Position{p.Latitude + metres/earthRadius*180/math.Pi, p.Longitude}
}

// east returns the position some metres to the east, also across the date line.
func east(p Position, metres float64) Position {
	circle := earthRadius * math.Cos(radians(p.Latitude))
	return Position{p.Latitude, math.Mod(p.Longitude+metres/circle*180/math.Pi+540, 360) - 180}
}

func TestMetres_AreDistancesOnTheGlobe(t *testing.T) {
	quarter := earthRadius * math.Pi / 2
	for _, c := range []struct {
		name     string
		from, to Position
		want     float64
	}{
		{"the same position", Position{48, 11}, Position{48, 11}, 0},
		{"pole to equator", Position{90, 0}, Position{0, 77}, quarter},
		{"pole to pole", Position{90, 12}, Position{-90, -100}, 2 * quarter},
		{"a pole with two longitudes", Position{90, 12}, Position{90, -100}, 0},
		{"across the pole", Position{89.9995, 0}, Position{89.9995, 180}, earthRadius * 0.001 * math.Pi / 180},
		{"across the date line", Position{0, 179.9995}, Position{0, -179.9995}, earthRadius * 0.001 * math.Pi / 180},
		{"both longitudes of the date line", Position{10, 180}, Position{10, -180}, 0},
		{"antipodes", Position{30, 40}, Position{-30, -140}, 2 * quarter},
		// Vincenty's formula on the ellipsoid gives 504.2 km.
		{"Munich to Berlin", Position{48.1374, 11.5755}, Position{52.52, 13.405}, 504_200},
	} {
		got, back := c.from.Metres(c.to), c.to.Metres(c.from)
		if tolerance := max(1e-3, c.want*0.005); math.Abs(got-c.want) > tolerance || math.Abs(got-back) > 1e-6 {
			t.Errorf("%s: %.4f m there, %.4f m back, want %.4f m", c.name, got, back, c.want)
		}
	}
}

func TestNearest_StationWithin150Metres(t *testing.T) {
	munich := Position{48.1413, 11.5578}
	at := func(id StationID, p Position) Station {
		return Station{ID: id, Latitude: p.Latitude, Longitude: p.Longitude}
	}
	one := []Station{at(1, munich)}
	for _, c := range []struct {
		name     string
		stations []Station
		car      Position
		want     StationID // 0: none
	}{
		{"no stations", nil, munich, 0},
		{"at the station", one, munich, 1},
		{"149 m north", one, north(munich, 149), 1},
		{"151 m north", one, north(munich, 151), 0},
		{"149 m south", one, north(munich, -149), 1},
		{"151 m south", one, north(munich, -151), 0},
		{"149 m east", one, east(munich, 149), 1},
		{"151 m east", one, east(munich, 151), 0},
		{"the nearer of two", []Station{at(1, munich), at(2, north(munich, 100))}, north(munich, 60), 2},
		{"the nearer of two, in the other order", []Station{at(2, north(munich, 100)), at(1, munich)}, north(munich, 60), 2},
		{"at the north pole", []Station{at(1, Position{90, 0})}, Position{north(Position{90, 0}, -149).Latitude, 123}, 1},
		{"across the north pole", []Station{at(1, Position{89.9995, 0})}, Position{89.9995, 180}, 1},
		{"across the date line", []Station{at(1, Position{0, 179.9995})}, Position{0, -179.9995}, 1},
		{"151 m across the date line", []Station{at(1, Position{0, 180})}, east(Position{0, 180}, 151), 0},
	} {
		got, found := NearestStation(c.stations, c.car, StationWithin)
		if got.ID != c.want || found != (c.want != 0) {
			t.Errorf("%s: station %d, found %v; want %d", c.name, got.ID, found, c.want)
		}
	}
}

func TestPosition_NeedsLatitudeAndLongitude(t *testing.T) {
	latitude, longitude := Reading{Value: 48.1}, Reading{Value: 11.5}
	for name, c := range map[string]struct {
		snapshot Snapshot
		known    bool
	}{
		"both":         {Snapshot{Latitude: latitude, Longitude: longitude}, true},
		"none":         {nil, false},
		"no longitude": {Snapshot{Latitude: latitude}, false},
		"null":         {Snapshot{Latitude: latitude, Longitude: {Value: nil}}, false},
	} {
		if p, known := c.snapshot.Position(); known != c.known || known && p != (Position{48.1, 11.5}) {
			t.Errorf("%s: position %v, known %v; want %v", name, p, known, c.known)
		}
	}
}

func TestAround_ContainsTheCircle(t *testing.T) {
	for _, p := range []Position{
		{}, {48.14, 11.56}, {-18, 179.999}, {-18, -179.999}, {70, 25}, {89.9, 0}, {-89.99, 100}, {90, 0},
	} {
		for _, metres := range []int64{1, 400, 50_000} {
			box := p.Around(metres)
			for angle := range 360 {
				// A place at the distance in a direction (great circle).
				d, a := float64(metres)/6_371_008.8, float64(angle)*math.Pi/180
				lat := p.Latitude * math.Pi / 180
				north := math.Asin(math.Sin(lat)*math.Cos(d) + math.Cos(lat)*math.Sin(d)*math.Cos(a))
				east := math.Atan2(math.Sin(a)*math.Sin(d)*math.Cos(lat), math.Cos(d)-math.Sin(lat)*math.Sin(north))
				at := Position{Latitude: north * 180 / math.Pi, Longitude: math.Remainder(p.Longitude+east*180/math.Pi, 360)}
				inside := box.West <= at.Longitude && at.Longitude <= box.East
				if box.West > box.East {
					inside = at.Longitude >= box.West || at.Longitude <= box.East
				}
				if !inside || at.Latitude < box.South || at.Latitude > box.North {
					t.Fatalf("%v is %d m from %v, and not in %+v", at, metres, p, box)
				}
			}
			if p.Latitude < 60 && box.North-box.South > 2.1*float64(metres)/111_195 {
				t.Errorf("%v, %d m: the box %+v is too large", p, metres, box)
			}
		}
	}
}
