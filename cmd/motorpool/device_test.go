package main

import (
	"os"
	"strings"
	"testing"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

func TestUnit_PrintsTheSettingsOfATeltonikaUnit(t *testing.T) {
	file := unitsFile(t)
	printed, _, err := runTool(t, "unit", "add", "352093081452251", "--protocol", "teltonika", "--server", "mqtt.example.com")
	require.NoError(t, err)
	password := passwordOf(t, printed, "352093081452251")
	for _, want := range []string{
		"Domain                         mqtt.example.com\n", "Port                           8883\n",
		"Client ID                      352093081452251\n",
		"Data topic                     teltonika/352093081452251/data\n",
		"Command topic                  teltonika/352093081452251/commands\n",
		"Codec JSON\n", "Keep Alive                     60\n", " 239 ", " 662 ",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in\n%s", want, printed)
		}
	}
	assert.Equal(t, strings.Count(printed, password), 1, "how often the password is printed")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, c := range []struct{ args, want string }{
		{"352093081452269 --protocol teltonika", "--server"},
		{"352093081452269 --protocol teltonika --server mqtt.example.com:8883", "without a port"},
		{"VAN-12 --protocol teltonika --server mqtt.example.com", "an IMEI of 15 digits"},
		{"352093081452269 --protocol morse --server mqtt.example.com", "want v1, ovms or teltonika"},
	} {
		_, said, err := runTool(t, append([]string{"unit", "add"}, strings.Fields(c.args)...)...)
		if err == nil || !strings.Contains(err.Error()+said, c.want) {
			t.Errorf("%s: printed %q, error %v, want %q", c.args, said, err, c.want)
		}
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(before) {
		t.Errorf("a refused command changed the file: %v", err)
	}
}

func TestUnit_PrintsTheSettingsOfAnOVMSModule(t *testing.T) {
	unitsFile(t)
	printed, _, err := runTool(t, "unit", "add", "OVMS-2111", "--protocol", "ovms", "--server", "mqtt.example.com")
	require.NoError(t, err)
	for _, want := range []string{
		"config set vehicle id OVMS-2111\n", "config set server.v3 server mqtt.example.com\n",
		"config set server.v3 updatetime.keepalive 60\n",
		"config set server.v3 tls yes\n", "metrics.include ", "s.v3.connected", "v.e.locked",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is missing in\n%s", want, printed)
		}
	}
}
