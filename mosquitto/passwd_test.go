package mosquitto_test

import (
	"strings"
	"testing"

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
