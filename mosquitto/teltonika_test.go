package mosquitto_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// teltonika returns a topic of a Teltonika unit.
func teltonika(unit, last string) string { return "teltonika/" + unit + "/" + last }

func teltonikaReadsAnothers(w world) {
	victim, attacker, service := w.unit(w.victim).mustDial(w.t), w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	service.subscribe(teltonika("+", "data"))
	victim.subscribe(teltonika(w.victim, "commands"))
	attacker.subscribe(teltonika(w.victim, "commands"), teltonika("+", "commands"), "teltonika/#", "+/+/data", teltonika(w.victim, "data"),
		"$share/g/"+teltonika("+", "data"), "$share/g/"+teltonika(w.victim, "commands"), teltonika(w.attacker, "commands"))

	victim.publish(teltonika(w.victim, "data"), "record")
	service.await("record")
	service.publish(teltonika(w.victim, "commands"), "for the victim")
	service.publish(teltonika(w.attacker, "commands"), "for the attacker")
	victim.await("for the victim")
	attacker.await("for the attacker")
	attacker.onlyReceived("for the attacker")
}

func teltonikaSpeaksForAnother(w world) {
	attacker, service := w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	service.subscribe(teltonika("+", "data"))
	attacker.publish(teltonika(w.victim, "data"), "forged")
	attacker.publishRetained(teltonika(w.victim, "data"), "forged")
	for unit, payload := range map[string]string{w.victim: "forged", w.attacker: "will"} {
		l := w.unit(w.attacker)
		l.willTopic, l.willPayload = teltonika(unit, "data"), payload
		l.mustDial(w.t).breakConnection()
	}
	again := w.unit(w.attacker).mustDial(w.t)
	again.publish(teltonika(w.attacker, "data"), "genuine")
	service.await("genuine")
	service.neverReceived("forged")
}

func teltonikaWritesCommands(w world) {
	victim, attacker, service := w.unit(w.victim).mustDial(w.t), w.unit(w.attacker).mustDial(w.t), w.service().mustDial(w.t)
	service.subscribe(teltonika("+", "data"))
	victim.subscribe(teltonika(w.victim, "commands"))
	attacker.subscribe(teltonika(w.attacker, "commands"))
	for _, unit := range []string{w.victim, w.attacker} {
		attacker.publish(teltonika(unit, "commands"), "forged")
		attacker.publishRetained(teltonika(unit, "commands"), "forged")
	}
	attacker.publish(teltonika(w.attacker, "data"), "all tried")
	service.await("all tried")
	later := w.unit(w.victim).mustDial(w.t) // a retained message would arrive now
	later.subscribe(teltonika(w.victim, "commands"))
	service.publish(teltonika(w.victim, "commands"), "genuine")
	service.publish(teltonika(w.attacker, "commands"), "genuine")
	for _, c := range []*client{later, attacker} {
		c.await("genuine")
		c.onlyReceived("genuine")
	}
	victim.neverReceived("forged")
}

func teltonikaAbusesTheService(w world) {
	victim, service := w.unit(w.victim).mustDial(w.t), w.service().mustDial(w.t)
	victim.subscribe(teltonika(w.victim, "commands"))
	service.subscribe(teltonika("+", "data"), teltonika("+", "commands"), teltonika(w.victim, "commands"), "teltonika/#")
	service.publish(teltonika(w.victim, "data"), "forged")
	service.publish(teltonika(w.victim, "commands"), "genuine command")
	victim.await("genuine command")
	victim.publish(teltonika(w.victim, "data"), "genuine answer")
	service.await("genuine answer")
	for _, m := range service.messages() {
		if m.payload == "forged" || strings.HasSuffix(m.topic, "/commands") {
			w.t.Errorf("the service received %+v, which it may not read", m)
		}
	}
}

// A unit with a certificate has the IMEI of the certificate as its name. A unit without TLS cannot
// connect.
func TestTeltonika_CertificateNamesTheUnit(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	ours := newAuthority(t)
	cfg := devstack.MosquittoConfig{
		ServicePassword: servicePassword, Units: map[string]string{"352093081452251": passwordOf("352093081452251")},
	}
	var roots *x509.CertPool
	cfg.CertFile, cfg.KeyFile, roots = certificate(t)
	cfg.UnitsCA, cfg.UnitsCRL = ours.files()
	broker := startMosquitto(t, cfg)
	for _, secured := range []string{broker.UnitsURL(), broker.CertificatesURL()} {
		address, err := url.Parse(secured)
		require.NoError(t, err)
		plain := login{url: "tcp://" + address.Host, user: "352093081452251", password: passwordOf("352093081452251")}
		if _, err := plain.dial(t); err == nil {
			t.Errorf("%s: a unit connected without TLS", secured)
		}
	}
	as := func(imei, user string) *client {
		l := login{url: broker.CertificatesURL(), id: "any-id", user: user}
		unit := ours.unit(imei, time.Hour)
		l.tune = func(o *paho.ClientOptions) {
			o.SetTLSConfig(&tls.Config{RootCAs: roots, Certificates: []tls.Certificate{unit}})
		}
		return l.mustDial(t)
	}
	service := login{url: broker.ServiceURL(), id: "instance", user: mosquitto.ServiceUser, password: servicePassword}.mustDial(t)
	service.subscribe(teltonika("+", "data"))
	victim, attacker := as("352093081452251", ""), as("352093081452269", "352093081452251")
	victim.subscribe(teltonika("352093081452251", "commands"))
	attacker.subscribe(teltonika("352093081452251", "commands"), teltonika("352093081452269", "commands"))
	attacker.publish(teltonika("352093081452251", "data"), "forged")
	attacker.publish(teltonika("352093081452269", "data"), "genuine")
	service.await("genuine")
	service.onlyReceived("genuine")
	service.publish(teltonika("352093081452251", "commands"), "for the victim")
	service.publish(teltonika("352093081452269", "commands"), "for the attacker")
	victim.await("for the victim")
	attacker.await("for the attacker")
	attacker.onlyReceived("for the attacker")
}
