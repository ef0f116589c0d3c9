package simulator

import (
	"time"

	"motorpool/telematics"
)

var munich = Point{48.1374, 11.5755}

// altstadtring is the ring road around the old town of Munich, clockwise.
var altstadtring = []Point{
	{48.1392, 11.5660}, {48.1419, 11.5697}, {48.1427, 11.5775}, {48.1407, 11.5834},
	{48.1362, 11.5843}, {48.1330, 11.5800}, {48.1319, 11.5717}, {48.1345, 11.5664},
}

// Demo returns the profile of a car of the demo fleet, each of which shows one outcome; false: the
// vehicle's number is not one of theirs (1 to 10).
func Demo(id telematics.VehicleID) (Profile, bool) {
	p, ok := demo()[id]
	return p, ok
}

func demo() map[telematics.VehicleID]Profile {
	driving := Hatchback(altstadtring[0])
	driving.SpeedKmh, driving.Ignition, driving.KeyIn, driving.Gear, driving.ParkBrake = 50, true, true, "D", false
	driving.Route, driving.Fastened = altstadtring, []telematics.Field{telematics.SeatbeltDriver}

	unplugged := func(at Point) Body {
		b := ElectricCar(at)
		b.Charging = "disconnected"
		return b
	}
	return map[telematics.VehicleID]Profile{
		1: {Name: "combustion hatchback", Body: Hatchback(Point{48.1402, 11.5600})},
		2: {Name: "electric car, charging", Body: ElectricCar(Point{48.1619, 11.5864})},
		3: {Name: "scooter with a top case", Body: Scooter(Point{48.1507, 11.5810}), Actions: AllActions},
		4: {
			Name: "van without attention and top case", Body: Van(Point{48.1271, 11.6050}),
			Actions: withoutAction(CarActions, telematics.AttentionSignal),
		},
		5: {Name: "offline for an hour", Body: Hatchback(Point{48.1107, 11.5939}), Gone: time.Hour},
		6: {Name: "driving at 50 km/h", Body: driving},
		7: {Name: "plug-in hybrid with a slow radio", Body: PlugInHybrid(Point{48.1755, 11.5518}), Latency: slowRadio},
		8: {Name: "answers too late", Body: unplugged(Point{48.1351, 11.5495}), Faults: Faults{Late: tooLate}},
		9: {Name: "noisy radio", Body: unplugged(Point{48.1340, 11.5822}), Faults: Faults{
			Drop: Rule{Every: 2}, Duplicate: Rule{Chance: 0.7}, Reorder: Rule{Chance: 0.7},
		}},
		10: {Name: "tries, and fails", Body: Hatchback(Point{48.1250, 11.5570}), Faults: Faults{Fail: Always}},
	}
}

// tooLate is longer than a caller waits, and short enough to watch an unknown outcome settle.
const tooLate = 20 * time.Second

// slowRadio leaves room for a horn pulse of a second: the answer comes after 6 to 9 seconds with
// it, too.
var slowRadio = Between(6*time.Second, 7800*time.Millisecond)
