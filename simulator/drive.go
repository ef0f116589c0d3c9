package simulator

import (
	"math"
	"math/rand/v2"
	"time"

	"motorpool/telematics"
)

// Point is a place, in degrees, WGS 84.
type Point struct{ Latitude, Longitude float64 }

const (
	kmPerDegree = 111.195 // of latitude, on a sphere of the Earth's mean radius
	refuelBelow = 5.0     // percent; the driver stops by a pump and fills up

	fullV, flatV   = 12.7, 11.9 // of the 12 V battery at rest
	refillVPerHour = 0.5
	drainVPerHour  = 0.003 // alarm, clock and telematics unit

	rsrpWorst, rsrpBest = -125.0, -65.0
	rsrpPull            = 60.0 // seconds in which the signal falls back to the site's own
	rsrpSpread          = 0.6  // dB per square root of a second
)

// Advance advances the vehicle by dt: it drives, uses or charges energy, and its signal strength
// changes.
func (b *Body) Advance(dt time.Duration, rng *rand.Rand) {
	if dt <= 0 {
		return
	}
	km := b.SpeedKmh * dt.Hours()
	if km > 0 {
		b.drive(km)
	}
	if battery := b.battery(); b.Powertrain.PlugsIn() && b.Charging == "charging" {
		*battery = min(100, *battery+b.ChargePerHour*dt.Hours())
		if *battery == 100 {
			b.Charging = "disconnected"
		}
	}
	if b.EngineRuns() || b.Charging == "charging" {
		b.OnboardV = min(fullV, b.OnboardV+refillVPerHour*dt.Hours())
	} else {
		b.OnboardV = max(min(flatV, b.OnboardV), b.OnboardV-drainVPerHour*dt.Hours())
	}
	b.wander(dt.Seconds(), rng)
}

// battery returns the level of the battery that the plug charges.
func (b *Body) battery() *float64 {
	if b.Powertrain == telematics.PlugInHybrid {
		return &b.ChargePercent
	}
	return &b.EnergyPercent
}

func (b *Body) drive(km float64) {
	b.MileageKm += km
	b.ServiceDueKm -= km
	b.EnergyPercent -= 100 * km / b.FullRangeKm
	if b.EnergyPercent < refuelBelow {
		b.EnergyPercent = 100
	}
	if len(b.Route) < 2 {
		here := Point{b.Latitude, b.Longitude}.to(b.Heading, km)
		b.Latitude, b.Longitude = here.Latitude, here.Longitude
		return
	}
	b.along += km
	b.place()
}

// place sets position and heading by the distance on the route.
func (b *Body) place() {
	length := 0.0
	for i := range b.Route {
		length += b.leg(i)
	}
	b.along = math.Mod(b.along, length)
	rest := b.along
	for i, from := range b.Route {
		leg := b.leg(i)
		if rest > leg {
			rest -= leg
			continue
		}
		b.Heading = from.bearing(b.Route[(i+1)%len(b.Route)])
		here := from.to(b.Heading, rest)
		b.Latitude, b.Longitude = here.Latitude, here.Longitude
		return
	}
}

// leg returns the length of the i-th leg of the route in kilometres.
func (b *Body) leg(i int) float64 {
	north, east := b.Route[i].offset(b.Route[(i+1)%len(b.Route)])
	return math.Hypot(north, east)
}

// offset returns how many kilometres to the north and the east another point lies; the Earth is
// flat within a city.
func (p Point) offset(to Point) (north, east float64) {
	return (to.Latitude - p.Latitude) * kmPerDegree, math.Remainder(to.Longitude-p.Longitude, 360) * p.kmPerDegreeEast()
}

func (p Point) kmPerDegreeEast() float64 { return kmPerDegree * math.Cos(p.Latitude*math.Pi/180) }

// bearing returns the direction of another point, in degrees clockwise from north.
func (p Point) bearing(to Point) float64 {
	north, east := p.offset(to)
	return math.Mod(math.Atan2(east, north)*180/math.Pi+360, 360)
}

// to returns the point some kilometres away.
func (p Point) to(bearing, km float64) Point {
	sin, cos := math.Sincos(bearing * math.Pi / 180)
	return Point{p.Latitude + km*cos/kmPerDegree, math.Remainder(p.Longitude+km*sin/p.kmPerDegreeEast(), 360)}
}

// wander changes the signal strength at random, and pulls it back to that of the site.
func (b *Body) wander(seconds float64, rng *rand.Rand) {
	b.RSRP += (b.SiteRSRP - b.RSRP) * min(1, seconds/rsrpPull)
	b.RSRP += rsrpSpread * math.Sqrt(min(seconds, rsrpPull)) * rng.NormFloat64()
	b.RSRP = min(rsrpBest, max(rsrpWorst, b.RSRP))
}

// voltage returns that of the 12 V net: of the battery at rest, or of its charger.
func (b *Body) voltage() float64 {
	switch {
	case b.EngineRuns() && b.Powertrain != telematics.Electric:
		return b.OnboardV + 1.6 // alternator
	case b.EngineRuns() || b.Charging == "charging":
		return b.OnboardV + 1.1 // converter from the traction battery
	case b.Ignition:
		return b.OnboardV - 0.4
	}
	return b.OnboardV
}
