package ovms

import (
	"context"
	"strings"
)

// happenings are the events of metrics that turn to yes and to no (vehicle.cpp: MetricModified).
var happenings = []struct{ metric, yes, no string }{
	{"v.c.charging", "vehicle.charge.start", "vehicle.charge.stop"},
	{"v.e.awake", "vehicle.awake", "vehicle.asleep"},
	{"v.e.locked", "vehicle.locked", "vehicle.unlocked"},
	{"v.e.on", "vehicle.on", "vehicle.off"},
}

// react sends what has changed, and the events of it. A value that stays as it was has none: a
// second lock causes an answer and nothing else.
func (m *Module) react() {
	all := m.metrics()
	for _, h := range happenings {
		before, known := m.told[h.metric]
		now := all[h.metric]
		m.told[h.metric] = now
		if !known || now == before {
			continue
		}
		event := h.yes
		if now == "no" {
			event = h.no
		}
		if event != "vehicle.asleep" { // EventListener
			m.transmitModified()
		}
		m.signal(event)
	}
}

// signal publishes an event, which carries no data (TransmitEvents).
func (m *Module) signal(event string) { m.publish("event/"+slashes(event), 0, false, "") }

// alertEvents follow an alert (vehicle.cpp: MetricModified, VehicleTicker1; ovms_location.cpp).
var alertEvents = map[string]string{
	"alarm.sounding": "vehicle.alarm.on", "alarm.stopped": "vehicle.alarm.off",
	"batt.12v.alert": "vehicle.alert.12v.on", "batt.12v.recovered": "vehicle.alert.12v.off",
	"batt.12v.shutdown": "vehicle.alert.12v.shutdown", "flatbed.moved": "location.alert.flatbed.moved",
	"valet.bounds": "location.alert.valet.bounds",
}

// Alert lets the module raise an alert, and the event of it (TransmitNotificationAlert).
func (m *Module) Alert(ctx context.Context, subtype, text string) {
	m.Ask(ctx, func() { m.raise(subtype, text) })
}

func (m *Module) raise(subtype, text string) {
	m.publish("notify/alert/"+slashes(subtype), 1, false, text)
	event, ok := alertEvents[subtype]
	if !ok {
		return
	}
	if strings.HasPrefix(event, "location.") { // EventListener
		m.transmitModified()
	}
	m.signal(event)
}
