package mosquitto_test

import (
	"net"
	"net/url"
	"strings"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// ovms returns a topic of an OVMS module.
func ovms(unit, last string) string { return "ovms/" + unit + "/" + unit + "/" + last }

// moduleFilters are the subscriptions of a module (ovms_server_v3.cpp: Connect).
var moduleFilters = []string{"client/+/active", "client/+/command/+", "client/+/request/metric", "client/+/request/config"}

// module connects a unit as the firmware does.
func (w world) module(name string) *client {
	c := w.unit(name).mustDial(w.t)
	for _, filter := range moduleFilters {
		c.subscribe(ovms(name, filter))
	}
	return c
}

// serviceFilters are the subscriptions of the service.
var serviceFilters = []string{"metric/#", "notify/alert/#", "event/vehicle/alert/#", "client/motorpool/response/+"}

func (w world) ovmsService() *client {
	c := w.service().mustDial(w.t)
	for _, filter := range serviceFilters {
		c.subscribe("ovms/+/+/" + filter)
	}
	return c
}

func ovmsReadsAnothers(w world) {
	victim, attacker, service := w.module(w.victim), w.module(w.attacker), w.ovmsService()
	for _, filter := range moduleFilters {
		attacker.subscribe(
			ovms(w.victim, filter), "ovms/"+w.attacker+"/"+w.victim+"/"+filter, "ovms/+/+/"+filter,
			"$share/g/"+ovms(w.victim, filter),
		)
	}
	attacker.subscribe("ovms/#", "ovms/+/+/metric/#", ovms(w.victim, "#"))

	victim.publishRetained(ovms(w.victim, "metric/v/p/latitude"), "48.137400")
	service.await("48.137400")
	service.publish(ovms(w.victim, "client/motorpool/command/1"), "unlock 4711")
	service.publish(ovms(w.attacker, "client/motorpool/command/1"), "lock 1147")
	victim.await("unlock 4711")
	attacker.await("lock 1147")
	attacker.onlyReceived("lock 1147")
}

func ovmsSpeaksForAnother(w world) {
	attacker, service := w.module(w.attacker), w.ovmsService()
	for _, last := range []string{
		"metric/v/e/locked", "metric/s/v3/connected", "notify/alert/flatbed/moved", "event/vehicle/alert/tpms",
		"client/motorpool/response/1",
	} {
		for _, names := range []string{w.victim + "/" + w.victim, w.attacker + "/" + w.victim, w.victim + "/" + w.attacker} {
			attacker.publish("ovms/"+names+"/"+last, "forged")
			attacker.publishRetained("ovms/"+names+"/"+last, "forged")
		}
		attacker.publish(ovms(w.attacker, last), "genuine "+last)
		if m := service.await("genuine " + last); m.topic != ovms(w.attacker, last) {
			w.t.Errorf("received %+v, want it on the attacker's own topic", m)
		}
	}
	service.neverReceived("forged")
}

func (c *client) neverReceived(payload string) {
	c.t.Helper()
	for _, m := range c.messages() {
		if m.payload == payload {
			c.t.Errorf("received %+v, which must not be delivered", m)
		}
	}
}

func ovmsLeavesAWillForAnother(w world) {
	service := w.ovmsService()
	will := func(unit, payload string) {
		l := w.unit(w.attacker)
		l.willTopic, l.willPayload = ovms(unit, "metric/s/v3/connected"), payload
		l.mustDial(w.t).breakConnection()
	}
	will(w.victim, "no, of the victim")
	will(w.attacker, "no, of the attacker")
	service.await("no, of the attacker")
	service.neverReceived("no, of the victim")
}

// below are topics to which a module subscribes.
var below = []string{
	"client/motorpool/command/1", "client/app/command/1", "client/motorpool/active", "client/app/active",
	"client/motorpool/request/metric", "client/motorpool/request/config", "client/app/request/config",
}

func ovmsWritesCommands(w world) {
	victim, attacker, service := w.module(w.victim), w.module(w.attacker), w.ovmsService()
	for _, last := range below {
		for _, unit := range []string{w.victim, w.attacker} {
			attacker.publish(ovms(unit, last), "forged")
			attacker.publishRetained(ovms(unit, last), "forged")
		}
	}
	attacker.publish(ovms(w.attacker, "metric/v/b/soc"), "all tried")
	service.await("all tried")
	service.publish(ovms(w.victim, "client/an-instance/active"), "1")
	service.publish(ovms(w.victim, "client/motorpool/command/1"), "genuine")
	service.publish(ovms(w.attacker, "client/motorpool/command/1"), "genuine")
	victim.await("genuine")
	victim.onlyReceived("1", "genuine")
	attacker.await("genuine")
	attacker.onlyReceived("genuine")
	later := w.module(w.victim) // a retained message would arrive now
	service.publish(ovms(w.victim, "client/motorpool/command/2"), "later")
	later.await("later")
	later.onlyReceived("later")
}

// A module answers client/{c}/request/config with the value of any setting, including passwords.
func ovmsReadsSettings(w world) {
	victim, service := w.module(w.victim), w.ovmsService()
	service.subscribe("ovms/+/+/client/#", "ovms/+/+/client/+/config/#", ovms(w.victim, "client/motorpool/config/password/server.v3"), "#")
	for _, last := range below[2:] {
		if !strings.HasSuffix(last, "/active") {
			service.publish(ovms(w.victim, last), "password/server.v3")
		}
	}
	service.publish(ovms(w.victim, "client/app/command/1"), "password/server.v3")
	service.publish(ovms(w.victim, "client/motorpool/command/1"), "genuine")
	victim.await("genuine")
	victim.onlyReceived("genuine")

	victim.publish(ovms(w.victim, "client/motorpool/config/password/server/v3"), "secret")
	victim.publish(ovms(w.victim, "client/motorpool/response/1"), "Vehicle locked")
	service.await("Vehicle locked")
	service.neverReceived("secret")
}

func ovmsAbusesTheService(w world) {
	victim, service := w.module(w.victim), w.ovmsService()
	for _, last := range below {
		service.subscribe(ovms(w.victim, last), "ovms/+/+/"+last)
	}
	service.publish(ovms(w.victim, "metric/v/e/locked"), "forged")
	service.publish(ovms(w.victim, "client/motorpool/response/1"), "forged")
	service.publish(ovms(w.victim, "notify/alert/flatbed/moved"), "forged")
	service.publish(ovms(w.victim, "client/motorpool/command/1"), "genuine command")
	victim.await("genuine command")
	victim.publish(ovms(w.victim, "client/motorpool/response/1"), "genuine answer")
	service.await("genuine answer")
	for _, m := range service.messages() {
		if m.payload == "forged" || strings.Contains(m.topic, "/command/") {
			w.t.Errorf("the service received %+v, which it may not read", m)
		}
	}
}

func ovmsRetains(w world) {
	attacker, earlier := w.module(w.attacker), w.ovmsService()
	attacker.publishRetained(ovms(w.attacker, "metric/v/e/locked"), "yes")
	attacker.publishRetained(ovms(w.attacker, "client/motorpool/response/1"), "Vehicle locked")
	w.t.Cleanup(func() { attacker.publishRetained(ovms(w.attacker, "client/motorpool/response/1"), "") })
	earlier.await("Vehicle locked")

	later := w.anotherInstance().mustDial(w.t)
	later.subscribe(ovms(w.attacker, "metric/#"), ovms(w.attacker, "client/motorpool/response/+"))
	for _, payload := range []string{"yes", "Vehicle locked"} {
		if m := later.await(payload); !m.retained {
			w.t.Errorf("%+v is not marked as retained", m)
		}
	}
}

// absentUnitsFindNoCommand is required of every MQTT broker, see README.md: a unit that checks no
// expiry must not receive an old command when it resumes its session.
func absentUnitsFindNoCommand(w world) {
	l, service := w.unit(w.victim), w.ovmsService()
	l.willTopic, l.willPayload = ovms(w.victim, "metric/s/v3/connected"), "no"
	var radio net.Conn
	l.tune = func(o *paho.ClientOptions) {
		o.SetCleanSession(false).SetCustomOpenConnectionFn(func(uri *url.URL, _ paho.ClientOptions) (net.Conn, error) {
			var err error
			radio, err = net.DialTimeout("tcp", uri.Host, patience)
			return radio, err
		})
	}
	send := func(unit, payload string, qos byte) {
		if !service.paho.Publish(ovms(unit, "client/motorpool/command/1"), qos, false, payload).WaitTimeout(patience) {
			w.t.Fatalf("the publication of %s was not acknowledged", payload)
		}
	}

	present := l.mustDial(w.t)
	present.subscribe(ovms(w.victim, "client/+/command/+"))
	send(w.victim, "now", 0)
	present.await("now")
	_ = radio.Close()
	service.await("no") // the MQTT broker has detected that the unit is disconnected
	send(w.victim, "unlock 4711", 0)
	send(w.victim, "kept", 1) // shows that the session exists
	// The embedded broker acknowledges a message before it keeps it, and the next one after that.
	send(w.attacker, "next", 1)

	back := l.mustDial(w.t)
	back.await("kept")
	back.onlyReceived("kept")

	w.unit(w.victim).mustDial(w.t) // ends the session
}
