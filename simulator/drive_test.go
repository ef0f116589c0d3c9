package simulator

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"motorpool/telematics"
)

func newRNG() *rand.Rand { return rand.New(rand.NewPCG(7, 7)) }

func TestAdvance_DrivingCarUsesFuelAndStaysOnItsLoop(t *testing.T) {
	profile, _ := Demo(6)
	body, rng := profile.Body, newRNG()
	start := body
	headings := map[float64]bool{}
	for range 3600 {
		here := Point{body.Latitude, body.Longitude}
		body.Advance(time.Second, rng)
		north, east := here.offset(Point{body.Latitude, body.Longitude})
		if metres := 1000 * math.Hypot(north, east); metres > 15 { // 50 km/h is 13.9 m/s
			t.Fatalf("the car moved %.0f m in a second, want at most 15", metres)
		}
		headings[math.Round(body.Heading)] = true
	}
	if km := body.MileageKm - start.MileageKm; math.Abs(km-50) > 0.01 {
		t.Errorf("the car drove %.2f km in an hour, want 50", km)
	}
	if used := start.EnergyPercent - body.EnergyPercent; used < 5 || used > 10 {
		t.Errorf("the car used %.1f %% of the tank, want 5 to 10", used)
	}
	if body.ServiceDueKm >= start.ServiceDueKm || len(headings) < len(altstadtring) {
		t.Errorf("service due in %g km, %d headings; want less and one per section", body.ServiceDueKm, len(headings))
	}
	for _, p := range body.Route {
		north, east := Point{body.Latitude, body.Longitude}.offset(p)
		if math.Hypot(north, east) > 2 {
			t.Errorf("the car is not on its loop: %g, %g", body.Latitude, body.Longitude)
		}
	}
}

func TestAdvance_RefuelsBeforeTheTankIsEmpty(t *testing.T) {
	profile, _ := Demo(6)
	body, rng := profile.Body, newRNG()
	filled := false
	for range 20 * 60 {
		before := body.EnergyPercent
		body.Advance(time.Minute, rng)
		filled = filled || body.EnergyPercent > before
		if body.EnergyPercent < refuelBelow {
			t.Fatalf("the tank is at %g %%, want it refuelled earlier", body.EnergyPercent)
		}
	}
	if !filled {
		t.Error("the car was not refuelled in 20 hours")
	}
}

func TestAdvance_BatteryChargesUntilFull(t *testing.T) {
	profile, _ := Demo(2)
	body, rng := profile.Body, newRNG()
	before := body.EnergyPercent
	body.Advance(time.Hour, rng)
	if body.EnergyPercent <= before || body.Charging != "charging" {
		t.Errorf("after an hour of charging: %g %%, %s", body.EnergyPercent, body.Charging)
	}
	body.Advance(24*time.Hour, rng)
	if body.EnergyPercent != 100 || body.Charging != "disconnected" {
		t.Errorf("after a day of charging: %g %%, %s; want 100 %% and disconnected", body.EnergyPercent, body.Charging)
	}
}

func TestAdvance_ParkedCarStaysAndItsStarterBatteryDrains(t *testing.T) {
	body, rng := Hatchback(munich), newRNG()
	start := body
	for range 48 {
		body.Advance(time.Hour, rng)
	}
	if body.Latitude != start.Latitude || body.MileageKm != start.MileageKm || body.EnergyPercent != start.EnergyPercent {
		t.Error("a parked car moved or used fuel")
	}
	if v := body.voltage(); v >= start.voltage() || v < flatV {
		t.Errorf("the starter battery has %g V after two days", v)
	}
}

func TestAdvance_SignalVariesAroundItsMean(t *testing.T) {
	body, rng := Hatchback(munich), newRNG()
	seen, sum := map[float64]bool{}, 0.0
	const n = 2000
	for range n {
		body.Advance(20*time.Second, rng)
		seen[math.Round(body.RSRP)] = true
		sum += body.RSRP
	}
	if mean := sum / n; math.Abs(mean-body.SiteRSRP) > 3 || len(seen) < 5 {
		t.Errorf("mean %.1f dBm, %d levels; want that of the site and at least 5", mean, len(seen))
	}
}

func TestAdvance_WithoutARouteDrivesStraight(t *testing.T) {
	body := Hatchback(munich)
	body.SpeedKmh, body.Heading = 100, 90
	body.Advance(36*time.Second, newRNG()) // one kilometre
	north, east := munich.offset(Point{body.Latitude, body.Longitude})
	if math.Abs(east-1) > 0.001 || math.Abs(north) > 0.001 {
		t.Errorf("the car moved %g km east and %g km north, want 1 and 0", east, north)
	}
}

// A unit reports no longitude beyond 180 degrees.
func TestAdvance_CrossesThe180thMeridian(t *testing.T) {
	for _, c := range []struct{ from, heading, want float64 }{{179.99, 90, -179.992}, {-179.99, 270, 179.992}} {
		body := Hatchback(Point{Latitude: 0, Longitude: c.from})
		body.Route, body.SpeedKmh, body.Heading = nil, 2*kmPerDegree*0.009, c.heading
		body.Advance(time.Hour, newRNG())
		if math.Abs(body.Longitude-c.want) > 1e-9 {
			t.Errorf("from %v it came to %v, want %v", c.from, body.Longitude, c.want)
		}
		if _, east := (Point{0, c.from}).offset(Point{0, body.Longitude}); math.Abs(math.Abs(east)-0.018*kmPerDegree) > 1e-9 {
			t.Errorf("from %v to %v it is %v km to the east", c.from, body.Longitude, east)
		}
	}
}

func TestDemo_TenCarsInOneCityAtDifferentPlaces(t *testing.T) {
	places := map[Point]bool{}
	for id := telematics.VehicleID(1); id <= 10; id++ {
		p, ok := Demo(id)
		if !ok || p.Name == "" {
			t.Fatalf("there is no demo car %d", id)
		}
		here := Point{p.Body.Latitude, p.Body.Longitude}
		north, east := munich.offset(here)
		if places[here] || math.Hypot(north, east) > 10 {
			t.Errorf("vehicle %d is at %v, outside the city or at the place of another", id, here)
		}
		places[here] = true
		missing, ok := map[telematics.VehicleID]int{3: 0, 4: 2}[id]
		if !ok {
			missing = 1 // the action of the top case
		}
		want := len(AllActions) - missing
		if got := len(p.withDefaults().Actions); got != want {
			t.Errorf("vehicle %d has %d actions, want %d", id, got, want)
		}
	}
	if _, ok := Demo(11); ok {
		t.Error("there is an eleventh demo car")
	}
}
