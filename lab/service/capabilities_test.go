package service_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

type capabilities struct {
	Capabilities struct{ Commands, Signals []string }
}

// wantCapabilities waits until the vehicle has these capabilities.
func (i *instance) wantCapabilities(what string, commands, signals []string) {
	i.Helper()
	var got capabilities
	defer func() {
		if i.Failed() {
			i.Logf("waited 10s for: %v and %v instead of %+v", commands, signals, got)
		}
	}()
	i.eventually(10*time.Second, what, func() bool {
		got = capabilities{}
		i.get("/api/v1/admin/vehicles/1", &got)
		return reflect.DeepEqual(got.Capabilities.Commands, commands) && reflect.DeepEqual(got.Capabilities.Signals, signals)
	})
}

func TestCapabilities_ByTheUnitElseByTheRecord(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	var all []string
	for _, a := range telematics.ControlActions {
		all = append(all, string(a))
	}
	none := []string{}
	i := s.serve()
	say := func(channel v1.Channel, text string, args ...any) {
		s.whisper("car-1", channel, fmt.Appendf(nil, text, args...))
	}
	i.wantCapabilities("a unit that was never connected", all, none)
	say(v1.PresenceChannel, `{"status":"online","session":"a"}`)
	say(v1.TelemetryChannel, `{"at":%q,"telemetry":{"key_status":null,"speed_kmh":5}}`, time.Now().UTC().Format(time.RFC3339Nano))
	i.wantCapabilities("a presence that names no commands", all, []string{"telemetry.speed_kmh"})
	say(v1.PresenceChannel, `{"status":"online","session":"b","capabilities":["unlock","lock","fly"]}`)
	say(v1.TelemetryChannel, `{"at":%q,"telemetry":{"speed_kmh":null}}`, time.Now().UTC().Format(time.RFC3339Nano))
	i.wantCapabilities("a presence that names two", []string{"lock", "unlock"}, []string{"telemetry.speed_kmh"})
	say(v1.PresenceChannel, `{"status":"online","session":"c","capabilities":[]}`)
	i.wantCapabilities("a presence that names none", none, []string{"telemetry.speed_kmh"})
	i.control(1, telematics.Lock).wants(409, "command_not_supported")
	i.stop()
	i = s.serve()
	i.wantCapabilities("after a restart", none, []string{"telemetry.speed_kmh"})
	say(v1.PresenceChannel, `{"status":"online","session":"d"}`)
	var status struct {
		Telemetry struct {
			SpeedKmh *float64 `json:"speed_kmh"`
		}
	}
	if i.get("/api/v1/admin/vehicles/1/status", &status); status.Telemetry.SpeedKmh != nil {
		s.Errorf("the speed after a restart is %v, want none", *status.Telemetry.SpeedKmh)
	}
	i.wantCapabilities("a presence that names no commands after one that did", none, []string{"telemetry.speed_kmh"})
}
