package mosquitto_test

import (
	"crypto/rand"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const servicePassword = "service-password"

// world is a broker under attack. Every attack has a separate victim and attacker, with its number
// in their names.
type world struct {
	t      *testing.T
	broker interface {
		UnitsURL() string
		ServiceURL() string
	}
	number           int
	victim, attacker string
}

// unitNames returns the units of both brokers. One unit has the name of the service's account.
func unitNames() []string {
	names := []string{mosquitto.ServiceUser}
	for i := range len(attacks) {
		names = append(names, victimOf(i), attackerOf(i))
	}
	return names
}

func victimOf(i int) string          { return fmt.Sprintf("victim-%d", i) }
func attackerOf(i int) string        { return fmt.Sprintf("attacker-%d", i) }
func passwordOf(unit string) string  { return unit + "-password" }
func topic(unit, last string) string { return "motorpool/v1/" + unit + "/" + last }
func all(last string) string         { return topic("+", last) }
func shared(group, last string) string {
	return "$share/" + group + "/" + all(last)
}

func embedded(t *testing.T) *devstack.MQTT {
	passwords := map[string]string{}
	for _, name := range unitNames() {
		passwords[name] = passwordOf(name)
	}
	broker, err := devstack.StartMQTT(devstack.MQTTConfig{
		UnitPassword: func(user string) (string, bool) {
			password, ok := passwords[user]
			return password, ok
		},
		ServicePassword: servicePassword,
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	return broker
}

func realMosquitto(t *testing.T, units []string) *devstack.Mosquitto {
	devstack.NeedServer(t, devstack.MosquittoServer)
	passwords := map[string]string{}
	for _, name := range units {
		passwords[name] = passwordOf(name)
	}
	return startMosquitto(t, devstack.MosquittoConfig{Units: passwords, ServicePassword: servicePassword})
}

func startMosquitto(t *testing.T, cfg devstack.MosquittoConfig) *devstack.Mosquitto {
	cfg.Dir = t.TempDir()
	broker, err := devstack.StartMosquitto(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, broker.Close()) })
	return broker
}

// secretGroup is the service's shared group [TOP-3]. Each attack uses a separate group: a client of
// the attack before that the broker still considers connected would take its share.
func (w world) secretGroup() string {
	return fmt.Sprintf("motorpool-5f0c6a0e9b7d4c3c8a1b2e4d6f708192-%d", w.number)
}

// unit returns the login of a unit, with a client id that the broker must replace.
func (w world) unit(name string) login {
	return login{url: w.broker.UnitsURL(), id: "any-id-of-" + name, user: name, password: passwordOf(name)}
}

// service returns the login of an instance of the service.
func (w world) service() login {
	return login{
		url: w.broker.ServiceURL(), id: fmt.Sprintf("instance-%d", w.number), user: mosquitto.ServiceUser,
		password: servicePassword,
	}
}

// anotherInstance returns a login with a random client id, as all instances use [TOP-4].
func (w world) anotherInstance() login {
	l := w.service()
	l.id = rand.Text()
	return l
}
