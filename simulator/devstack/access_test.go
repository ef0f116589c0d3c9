package devstack

import (
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

const accessFile = `
# comments and empty lines count for nothing
topic read anonymous/only

user service
topic read up/+/ack
topic readwrite up/+/presence
topic write down/#
topic deny up/secret/ack
topic both/ways

pattern read down/%u/command
pattern write up/%u/ack
pattern readwrite by-id/%c
`

func TestAccess_AllowsOnlyWhatTheFileLists(t *testing.T) {
	a, err := parseAccess(accessFile)
	require.NoError(t, err)
	for _, c := range []struct {
		user   string
		want   verb
		filter string
		may    bool
	}{
		{"service", read, "up/car/ack", true},
		{"service", read, "up/+/ack", true},
		{"service", read, "$share/group/up/+/ack", true},
		{"service", read, "$SHARE/group/up/+/ack", true},
		{"service", write, "up/car/ack", false},
		{"service", read, "up/car/ack/deeper", false},
		{"service", read, "up/car", false},
		{"service", read, "up//ack", true},
		{"service", read, "up/#", false},
		{"service", read, "up/+/#", false},
		{"service", read, "#", false},
		{"service", read, "+/+/ack", false},
		{"service", read, "up/secret/ack", false},
		{"service", read, "up/car/presence", true},
		{"service", write, "up/car/presence", true},
		{"service", write, "down", true},
		{"service", write, "down/car/command", true},
		{"service", read, "down/car/command", false},
		{"service", read, "both/ways", true},
		{"service", write, "both/ways", true},
		{"service", read, "$SYS/broker/version", false},
		{"service", read, "$share", false},
		{"service", read, "$share/group", false},
		{"service", read, "$share/group/", false},
		{"service", read, "anonymous/only", false},

		{"car", read, "down/car/command", true},
		{"car", read, "$share/group/down/car/command", true},
		{"car", write, "down/car/command", false},
		{"car", read, "down/other/command", false},
		{"car", read, "down/+/command", false},
		{"car", read, "$share/group/down/+/command", false},
		{"car", read, "down/#", false},
		{"car", write, "up/car/ack", true},
		{"car", write, "up/other/ack", false},
		{"car", read, "up/car/ack", false},
		{"car", read, "by-id/id-of-car", true},
		{"car", read, "by-id/car", false},

		{"+", read, "down/+/command", false},
		{"+", read, "down/car/command", false},
		{"#", read, "down/#/command", false},
		{"", read, "down//command", true}, // no listener accepts a client without a name
	} {
		assert.Equal(t, a.may(c.user, "id-of-"+c.user, c.want, c.filter), c.may, "may(%q, %d, %q)", c.user, c.want, c.filter)
	}
}

func TestAccess_WildcardsDoNotMatchTopicsOfTheBroker(t *testing.T) {
	a, err := parseAccess("user monitor\ntopic read #\ntopic read +/broker/version\n")
	require.NoError(t, err)
	if a.may("monitor", "", read, "$SYS/broker/version") {
		t.Error("the rule # allows $SYS")
	}
	if !a.may("monitor", "", read, "any/topic") {
		t.Error("the rule # does not allow an ordinary topic")
	}
	if a, err = parseAccess("user monitor\ntopic read $SYS/#\n"); err != nil || !a.may("monitor", "", read, "$SYS/broker/version") {
		t.Errorf("a rule for $SYS does not allow it (%v)", err)
	}
}

func TestParseAccess_RefusesAMistake(t *testing.T) {
	for _, text := range []string{"allow all", "user", "topic", "pattern  "} {
		if _, err := parseAccess("user a\n" + text); err == nil || !strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q gave %v, want an error that names line 2", text, err)
		}
	}
}
