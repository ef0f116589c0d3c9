package firmware

import (
	"slices"
)

// transmit sends a metric, without QoS and retained: server, TransmitMetric.
func (m *Module) transmit(metric *metric) {
	if m.included(metric.name) {
		m.publish("metric/"+topicOf(metric.name), metric.value, 0, true)
	}
}

func (m *Module) included(name string) bool {
	return len(m.config.Include) == 0 || passes(m.config.Include, name)
}

// transmitAll sends every metric that has a value, a hundred a second.
func (m *Module) transmitAll() {
	m.countClients()
	m.sentAll, m.sent = m.now, m.now
	sent := 0
	for ; m.next < len(m.metrics) && sent < perCall; m.next++ {
		metric := m.metrics[m.next]
		metric.modified = false
		if m.included(metric.name) {
			m.transmit(metric)
			sent++
		}
	}
	if m.next == len(m.metrics) {
		m.next = 0
	}
}

func (m *Module) transmitModified() {
	m.countClients()
	m.sent = m.now
	for _, metric := range m.metrics {
		if metric.modified {
			metric.modified = false
			m.transmit(metric)
		}
	}
}

// set is what follows from a value that the vehicle reports: components/vehicle/vehicle.cpp:1975.
func (m *Module) set(name string, value any) {
	if !m.metrics.set(name, value) {
		return
	}
	on := m.is(name)
	switch name {
	case "v.e.locked":
		m.signal(either(on, "vehicle.locked", "vehicle.unlocked"))
	case "v.e.on":
		m.signal(either(on, "vehicle.on", "vehicle.off"))
	case "v.e.awake":
		m.signal(either(on, "vehicle.awake", "vehicle.asleep"))
	case "v.c.charging":
		m.signal(either(on, "vehicle.charge.start", "vehicle.charge.stop"))
	case "v.e.alarm": // the event waits in a queue, the notification does not
		m.notify(notification{
			"alert", either(on, "alarm.sounding", "alarm.stopped"),
			either(on, "Vehicle alarm is sounding", "Vehicle alarm has stopped"),
		})
		m.signal(either(on, "vehicle.alarm.on", "vehicle.alarm.off"))
	case "v.b.12v.voltage.alert": // vehicle.cpp:977
		m.notify(notification{
			"alert", either(on, "batt.12v.alert", "batt.12v.recovered"),
			either(on, "12V Battery critical: 11.1V (ref=12.6V)", "12V Battery restored: 12.7V (ref=12.6V)"),
		})
		m.signal(either(on, "vehicle.alert.12v.on", "vehicle.alert.12v.off"))
	}
}

func either(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}

// hurried are the events at which modified metrics are sent without delay: server, EventListener.
var hurried = []string{
	"location.alert.flatbed.moved", "location.alert.valet.bounds", "vehicle.charge.start", "vehicle.charge.stop",
	"vehicle.charge.finished", "vehicle.awake", "vehicle.on", "vehicle.off", "vehicle.locked", "vehicle.unlocked", "app.disconnected",
}

// signal tells the server's listener of an event, then publishes it on a separate topic, with an
// empty payload, and on the old topic with its name: server, TransmitEvents.
func (m *Module) signal(event string) {
	if !m.connected {
		return
	}
	switch {
	case slices.Contains(hurried, event):
		m.transmitModified()
	case event != "app.connected" && event != "server.v3.connected":
	case m.sentAll == 0 || m.now-m.sentAll > 30: // before the first tick, which subscribes
		m.transmitAll()
	case m.now-m.sent > 20:
		m.transmitModified()
	}
	m.publish("event/"+topicOf(event), "", 0, false)
}

// Signal raises an event.
func (m *Module) Signal(event string) { m.do(func() { m.signal(event) }) }

type notification struct{ kind, subtype, text string }

// notify sends a notification, or keeps it until there is a connection: server,
// IncomingNotification.
func (m *Module) notify(n notification) {
	if m.connected {
		m.send(n)
		return
	}
	m.pending = append(m.pending, n)
}

// sendPending sends the oldest of a type. It counts as delivered when it is written.
func (m *Module) sendPending(kind string) {
	if at := slices.IndexFunc(m.pending, func(n notification) bool { return n.kind == kind }); at >= 0 {
		n := m.pending[at]
		m.pending = slices.Delete(m.pending, at, at+1)
		m.send(n)
	}
}

// send publishes with QoS 1, never retained, and does not wait: server, TransmitNotificationAlert.
func (m *Module) send(n notification) {
	m.publish("notify/"+n.kind+"/"+topicOf(n.subtype), n.text, 1, false)
}
