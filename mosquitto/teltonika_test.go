package mosquitto_test

import (
	"crypto/tls"
	"crypto/x509"
	"net/url"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// teltonika returns a topic of a Teltonika unit.
func teltonika(unit, last string) string { return "teltonika/" + unit + "/" + last }

func teltonikaFilters(w world) []string {
	return []string{
		teltonika(w.victim, "commands"), teltonika("+", "commands"), "teltonika/#", "+/+/data", teltonika(w.victim, "data"),
		"$share/g/" + teltonika("+", "data"), "$share/g/" + teltonika(w.victim, "commands"),
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
