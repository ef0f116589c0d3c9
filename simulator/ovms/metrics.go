package ovms

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"motorpool/simulator"
	"motorpool/telematics"
)

func slashes(name string) string { return strings.ReplaceAll(name, ".", "/") }

// observe lets the module listen to the bus of its car.
func (m *Module) observe() {
	if m.Car.Locked != m.turned {
		m.recordTurn()
	}
	if !m.Deaf() && believes[m.config.Type] == byBus {
		m.locked = m.Car.Locked
	}
}

// recordTurn records whether the car is locked now.
func (m *Module) recordTurn() {
	m.turned = m.Car.Locked
	m.record(simulator.Turned, line{}, simulator.TurnOf(m.turned))
}

// metrics returns what the module knows, as text (OvmsMetric::AsString).
func (m *Module) metrics() map[string]string {
	b := &m.Car
	open := func(f telematics.Field) string { return yesOrNo(slices.Contains(b.Opened, f)) }
	all := map[string]string{
		"m.version": m.config.Firmware, "s.v3.connected": "yes", "s.v3.peers": strconv.Itoa(len(m.clients)), "v.type": m.config.Type,
		"v.b.soc": decimal(b.EnergyPercent, 1), "v.b.range.est": decimal(b.FullRangeKm*b.EnergyPercent/100, 0),
		"v.b.12v.voltage": decimal(b.OnboardV, 2),
		"v.e.on":          yesOrNo(b.Ignition), "v.e.awake": yesOrNo(b.Ignition || b.Charging == "charging"),
		"v.e.locked":    yesOrNo(m.locked),
		"v.e.handbrake": yesOrNo(b.ParkBrake), "v.e.gear": gears[b.Gear],
		"v.e.valet": "no", "v.e.serv.range": strconv.Itoa(int(b.ServiceDueKm)),
		"v.p.odometer": decimal(b.MileageKm, 1), "v.p.speed": decimal(b.SpeedKmh, 1), "v.p.direction": decimal(b.Heading, 1),
		"v.p.gpslock": yesOrNo(!m.Blind()),
		"v.d.fl":      open(telematics.DoorFrontLeft), "v.d.fr": open(telematics.DoorFrontRight), "v.d.rl": open(telematics.DoorRearLeft),
		"v.d.rr": open(telematics.DoorRearRight), "v.d.trunk": open(telematics.DoorTrunk),
		"v.c.charging": yesOrNo(b.Charging == "charging"), "v.c.pilot": yesOrNo(b.Charging == "charging"), "v.c.state": "done",
		"v.p.latitude": degrees(b.Latitude), "v.p.longitude": degrees(b.Longitude),
		"v.p.gpstime": time.Now().UTC().Format("2006-01-02 15:04:05 UTC"),
	}
	switch {
	case b.Charging == "charging":
		all["v.c.state"] = "charging"
	case b.Ignition: // the charge has ended, and the text is emptied
		all["v.c.state"] = ""
	}
	if m.Blind() { // stale, and sent all the same
		for _, name := range []string{"v.p.latitude", "v.p.longitude", "v.p.gpstime"} {
			if before, ok := m.sent[name]; ok {
				all[name] = before
			} else {
				delete(all, name) // not defined
			}
		}
	}
	if m.Deaf() {
		for name := range all {
			if before, ok := m.sent[name]; ok && fromBus(name) {
				all[name] = before
			}
		}
	}
	return all
}

// fromBus reports whether the module hears a metric from its car, and has not its own sensor.
func fromBus(name string) bool {
	if slices.Contains(
		[]string{"v.p.latitude", "v.p.longitude", "v.p.gpstime", "v.p.gpslock", "v.p.direction", "v.b.12v.voltage", "v.e.locked", "v.type"},
		name,
	) {
		return false
	}
	return strings.HasPrefix(name, "v.")
}

var gears = map[string]string{"R": "-1", "N": "0", "P": "0", "D": "1"}

func yesOrNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// decimal writes a value, which the vehicle has rounded: six significant digits, no
// trailing zeros (OvmsMetricFloat::AsString).
func decimal(f float64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(f*scale)/scale, 'g', 6, 32)
}

// degrees writes a coordinate (SetFormat).
func degrees(f float64) string { return strconv.FormatFloat(float64(float32(f)), 'f', 6, 64) }

// transmitAll sends everything, stale or not (TransmitAllMetrics).
func (m *Module) transmitAll() {
	m.sendAll, m.lastAll, m.lastSent = false, m.seconds, m.seconds
	m.transmit(func(string, string) bool { return true })
}

// transmitModified sends what differs from what was sent last (TransmitModifiedMetrics).
func (m *Module) transmitModified() {
	m.lastSent = m.seconds
	m.transmit(func(name, text string) bool { return m.sent[name] != text })
}

func (m *Module) transmit(included func(name, text string) bool) {
	if m.link == nil {
		return
	}
	all := m.metrics()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if text := all[name]; included(name, text) {
			m.sent[name] = text
			m.publish("metric/"+slashes(name), 0, true, text)
		}
	}
}
