package mosquitto_test

import (
	"strings"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

func TestPasswordLine_MosquittoAcceptsOnlyThatPassword(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	passwords := map[string]string{
		"354762111234567": "short",
		"unit_A-1":        "with spaces, : colons and ünïcödé",
		"unit-2":          strings.Repeat("long", 100),
	}
	broker := startMosquitto(t, devstack.MosquittoConfig{Units: passwords})
	for user, password := range passwords {
		l := login{url: broker.UnitsURL(), user: user, password: password}
		l.mustDial(t)
		l.password += "x"
		if _, err := l.dial(t); err == nil {
			t.Errorf("%s connected with a wrong password", user)
		}
	}
}

func TestReload_AcceptsNewUnitsAndRefusesRemovedOnes(t *testing.T) {
	t.Parallel()
	broker := realMosquitto(t, []string{"kept", "removed"})
	as := func(unit string) login {
		return login{url: broker.UnitsURL(), user: unit, password: passwordOf(unit)}
	}
	kept, removed := as("kept").mustDial(t), as("removed").mustDial(t)
	require.NoError(t, broker.SetUnits(map[string]string{"kept": passwordOf("kept"), "new": passwordOf("new")}))
	awaitLogin(t, as("new"))
	removed.awaitLost()
	if _, err := as("removed").dial(t); err == nil {
		t.Error("the removed unit connected")
	}
	if !kept.connected() {
		t.Error("the kept unit was disconnected")
	}
}

// OVMS modules keep their sessions. Before 2.0.23, Mosquitto ends an absent session again at each
// reload that refuses it. With persistent_client_expiration it is then twice in the list of
// sessions to expire, and one entry outlives it: Mosquitto crashes, or disconnects another client.
func TestReload_LeavesClientsAloneWhosePasswordsChangedWhileTheyWereAbsent(t *testing.T) {
	// glibc overwrites what is freed, so that the entry is found in each run.
	t.Setenv("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165")
	units := []string{"unit-1", "unit-2", "unit-3", "unit-4"}
	broker := realMosquitto(t, units)
	passwords := map[string]string{}
	as := func(unit string) login {
		return login{
			url: broker.UnitsURL(), id: unit, user: unit, password: passwords[unit],
			tune: func(o *paho.ClientOptions) { o.SetCleanSession(false) },
		}
	}
	for _, unit := range units {
		passwords[unit] = passwordOf(unit)
		as(unit).mustDial(t).paho.Disconnect(0)
		passwords[unit] = "another"
	}
	require.NoError(t, broker.SetUnits(passwords))
	awaitLogin(t, as(units[0]))
	var reconnected []*client
	for _, unit := range units {
		reconnected = append(reconnected, as(unit).mustDial(t))
	}
	time.Sleep(2500 * time.Millisecond) // Mosquitto expires sessions once a second
	for i, c := range reconnected {
		if !c.connected() {
			t.Errorf("%s was disconnected", units[i])
		}
	}
}

func TestPasswordLine_HasARandomSalt(t *testing.T) {
	first, err := mosquitto.PasswordLine("unit", "password")
	require.NoError(t, err)
	second, err := mosquitto.PasswordLine("unit", "password")
	require.NoError(t, err)
	if first == second {
		t.Error("two lines are equal: the salt is not random")
	}
	if !strings.HasPrefix(first, "unit:$7$101$") || strings.ContainsAny(first, "\r\n") {
		t.Errorf("the line is %q, want one that begins with unit:$7$101$", first)
	}
}

func TestPasswordLine_RefusesNamesThatCorruptTheFile(t *testing.T) {
	for _, c := range []struct{ user, password string }{
		{"", "password"}, {"a:b", "password"}, {"a\nroot", "password"}, {"a\r", "password"}, {"a\x00", "password"}, {"unit", ""},
	} {
		if line, err := mosquitto.PasswordLine(c.user, c.password); err == nil {
			t.Errorf("PasswordLine(%q, %q) = %q, want an error", c.user, c.password, line)
		}
	}
}
