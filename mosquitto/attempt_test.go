package mosquitto_test

import (
	"slices"
	"strings"
)

// dialect has the topics of a protocol's units.
type dialect struct {
	topic   func(unit, last string) string
	says    []string // topics that a unit writes
	gets    []string // topics that the service writes
	filters []string // to which a unit subscribes
	barred  []string // topics within these filters, which no unit may write
	heard   []string // filters of the service
	will    string   // topic of a last will
	clears  string   // topic that the service may write, too, to clear what is retained [PRE-1]
	// poses are topics with which a unit could pose as another one, in addition to the other's.
	poses func(unit, as, last string) []string
}

var (
	v1 = dialect{
		topic: topic, says: []string{"ack", "telemetry", "presence"}, gets: []string{"command"}, filters: []string{"command"},
		barred: []string{"command"}, heard: []string{"ack", "telemetry", "presence"}, will: "presence",
		clears: "presence",
	}
	ovmsModule = dialect{
		topic: ovms, filters: moduleFilters, barred: below, heard: serviceFilters, will: "metric/s/v3/connected",
		says: []string{
			"metric/v/e/locked", "metric/s/v3/connected", "notify/alert/flatbed/moved", "event/vehicle/alert/tpms",
			"client/motorpool/response/1",
		},
		gets: []string{"client/an-instance/active", "client/motorpool/command/1"},
		poses: func(unit, as, last string) []string {
			return []string{"ovms/" + unit + "/" + as + "/" + last, "ovms/" + as + "/" + unit + "/" + last}
		},
	}
	tracker = dialect{
		topic: teltonika, says: []string{"data"}, gets: []string{"commands"}, filters: []string{"commands"},
		barred: []string{"commands"}, heard: []string{"data"}, will: "data",
	}
)

// of returns topics or filters of a unit.
func (d dialect) of(unit string, lasts []string) (topics []string) {
	for _, last := range lasts {
		topics = append(topics, d.topic(unit, last))
	}
	return topics
}

// attempt is what an attacker tries with the login of its unit.
type attempt struct {
	dialect
	reads  func(world) []string // filters to which it subscribes
	speaks bool                 // as the victim
	wills  bool                 // leaves a last will as the victim
	orders bool                 // writes commands to the victim, and to itself
}

// run makes the attempt. Then every message that the dialect allows is delivered, to whom it is for
// and to no other.
func (a attempt) run(w world) {
	service := w.service().mustDial(w.t)
	service.subscribe(a.of("+", a.heard)...)
	if a.wills {
		for _, will := range []struct{ unit, payload string }{{w.victim, "forged"}, {w.attacker, "last will"}} {
			l := w.unit(w.attacker)
			l.willTopic, l.willPayload = a.topic(will.unit, a.will), will.payload
			l.mustDial(w.t).breakConnection()
		}
		// The second connection has replaced the first, whose will has been published by then.
		service.await("last will")
	}
	victim, attacker := a.connect(w, w.victim), a.connect(w, w.attacker)
	if a.reads != nil {
		attacker.subscribe(a.reads(w)...)
	}
	forge := func(topics ...string) {
		for _, topic := range topics {
			attacker.publish(topic, "forged")
			attacker.publishRetained(topic, "forged")
		}
	}
	if a.orders {
		forge(a.of(w.victim, a.barred)...)
		forge(a.of(w.attacker, a.barred)...)
	}
	for _, last := range a.says {
		if a.speaks {
			forge(a.topic(w.victim, last))
			if a.poses != nil {
				forge(a.poses(w.attacker, w.victim, last)...)
			}
		}
		for unit, c := range map[string]*client{w.victim: victim, w.attacker: attacker} {
			c.publish(a.topic(unit, last), unit+" says "+last)
			if m := service.await(unit + " says " + last); m.topic != a.topic(unit, last) {
				w.t.Errorf("received %+v, want it on the topic of %s", m, unit)
			}
		}
	}
	a.command(w, service, victim, attacker)
	if a.orders { // a retained message would arrive now
		a.command(w, service, a.connect(w, w.victim), a.connect(w, w.attacker))
	}
	service.neverReceived("forged")
}

// connect connects a unit as its firmware does.
func (d dialect) connect(w world, unit string) *client {
	c := w.unit(unit).mustDial(w.t)
	c.subscribe(d.of(unit, d.filters)...)
	return c
}

// command checks that both units receive what the service sends to them, and nothing else.
func (d dialect) command(w world, service, victim, attacker *client) {
	units := []string{w.victim, w.attacker}
	for _, unit := range units {
		for _, last := range d.gets {
			service.publish(d.topic(unit, last), unit+" gets "+last)
		}
	}
	for i, c := range []*client{victim, attacker} {
		var own []string
		for _, last := range d.gets {
			own = append(own, units[i]+" gets "+last)
			c.await(units[i] + " gets " + last)
		}
		c.onlyReceived(own...)
	}
}

// abusedByTheService lets the service read commands, and speak for a unit.
func (d dialect) abusedByTheService(filters ...string) func(world) {
	return func(w world) {
		victim, service := d.connect(w, w.victim), w.service().mustDial(w.t)
		service.subscribe(slices.Concat(filters, d.of("+", d.heard), d.of("+", d.barred), d.of(w.victim, d.barred))...)
		for _, last := range d.says {
			if last != d.clears {
				service.publish(d.topic(w.victim, last), "forged")
			}
		}
		service.publish(d.topic(w.victim, d.gets[len(d.gets)-1]), "genuine command")
		victim.await("genuine command")
		victim.publish(d.topic(w.victim, d.says[0]), "genuine answer")
		service.await("genuine answer")
		for _, m := range service.messages() {
			counts := m.topic == "$SYS/broker/retained messages/count" || m.topic == "$SYS/broker/heap/current"
			if m.payload == "forged" || strings.Contains(m.topic, "/command") || strings.HasPrefix(m.topic, "$SYS") && !counts {
				w.t.Errorf("the service received %+v, which it may not read", m)
			}
		}
	}
}
