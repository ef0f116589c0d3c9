package settings

import (
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

func TestUnknownVariables_AreNamedWithTheNearest(t *testing.T) {
	var program struct {
		Serve struct {
			DatabaseURL string
			MQTTURL     string `name:"mqtt-url"`
			Budget      time.Duration
			Agency      int `env:"-"`
		} `cmd:""`
		Other struct {
			Token string
			Key   string `env:"AGENCY_KEY_ID"`
		} `cmd:""`
	}
	parser, err := kong.New(&program, new(Reader).Options("MOTORPOOL")...)
	require.NoError(t, err)
	got := UnknownVariables(parser.Model.Node, []string{
		"PATH=/bin", "MOTORPOOL_DATABASE_URL=x", "MOTORPOOL_TOKEN=x", "MOTORPOOL_DATABSE_URL=x", "MOTORPOOL_MQTTURL=",
		"MOTORPOOL_AGENCY=1", "MOTORPOOL_COLOUR=red", "MOTORPOOL_DEV_HTTP=x", "MOTORPOOL=x", "MOTORPOOLS_BUDGET=x",
		"MOTORPOOL_SERVICE_HOST=10.0.0.1", "MOTORPOOL_SERVICE_PORT_HTTP=80", "MOTORPOOL_PORT=tcp://10.0.0.1:80",
		"MOTORPOOL_PORT_80_TCP_ADDR=10.0.0.1", "MOTORPOOL_INTERNAL_SERVICE_HOST=10.0.0.1", "MOTORPOOL_HTTP_PORT=8080",
	}, "MOTORPOOL", "MOTORPOOL_DEV")
	want := []UnknownVariable{
		{
			"MOTORPOOL_AGENCY", "",
		},
		{"MOTORPOOL_COLOUR", ""},
		{"MOTORPOOL_DATABSE_URL", "MOTORPOOL_DATABASE_URL"},
		{"MOTORPOOL_HTTP_PORT", ""},
		{"MOTORPOOL_MQTTURL", "MOTORPOOL_MQTT_URL"},
	}
	assert.DeepEqual(t, got, want, "unknown")
}

func TestSettings_NegativeDurationIsAProblem(t *testing.T) {
	var program struct{ Wait time.Duration }
	var settings Reader
	parser, err := kong.New(&program, settings.Options("MOTORPOOL")...)
	require.NoError(t, err)
	if _, err := parser.Parse([]string{"--wait=-1s"}); err != nil || settings.Problems() == nil {
		t.Errorf("--wait=-1s: %v, problems %v; want one", err, settings.Problems())
	}
}
