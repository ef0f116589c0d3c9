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

// serviceFilters are the subscriptions of the service.
var serviceFilters = []string{"metric/#", "notify/alert/#", "event/vehicle/alert/#", "client/motorpool/response/+"}

func ovmsFilters(w world) []string {
	filters := []string{"ovms/#", "ovms/+/+/metric/#", ovms(w.victim, "#")}
	for _, filter := range moduleFilters {
		filters = append(
			filters, ovms(w.victim, filter), "ovms/"+w.attacker+"/"+w.victim+"/"+filter, "ovms/+/+/"+filter,
			"$share/g/"+ovms(w.victim, filter),
		)
	}
	return filters
}

func (w world) ovmsService() *client {
	c := w.service().mustDial(w.t)
	for _, filter := range serviceFilters {
		c.subscribe("ovms/+/+/" + filter)
	}
	return c
}

func (c *client) neverReceived(payload string) {
	c.t.Helper()
	for _, m := range c.messages() {
		if m.payload == payload {
			c.t.Errorf("received %+v, which must not be delivered", m)
		}
	}
}

// below are topics to which a module subscribes.
var below = []string{
	"client/motorpool/command/1", "client/app/command/1", "client/motorpool/active", "client/app/active",
	"client/motorpool/request/metric", "client/motorpool/request/config", "client/app/request/config",
}

// A module answers client/{c}/request/config with the value of any setting, including passwords.
func ovmsReadsSettings(w world) {
	victim, service := ovmsModule.connect(w, w.victim), w.ovmsService()
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

func ovmsRetains(w world) {
	attacker, earlier := ovmsModule.connect(w, w.attacker), w.ovmsService()
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
