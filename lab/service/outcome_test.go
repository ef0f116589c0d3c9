package service_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/assert"
	"motorpool/mosquitto"
	"motorpool/simulator"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

func slow(latency time.Duration) func(telematics.VehicleID) simulator.Profile {
	return func(id telematics.VehicleID) simulator.Profile {
		p := healthy(id)
		p.Latency = simulator.Between(latency, latency+time.Millisecond)
		return p
	}
}

func TestCommand_EveryActionIsExecutedAndReported(t *testing.T) {
	t.Parallel()
	s := startStack(t, 1)
	var recorder simulator.Recorder
	i := s.serve()
	s.drive(&recorder, healthy)
	for _, action := range telematics.ControlActions {
		r := i.control(1, action)
		var c command
		s.must(json.Unmarshal(r.Data, &c))
		if r.status != 200 || c.State != "succeeded" || c.Outcome != "executed" {
			s.Errorf("%s: %d %s %+v", action, r.status, r.Error.Code, c)
		}
		var again command
		if i.get("/api/v1/admin/commands/"+c.ID, &again); again != c {
			s.Errorf("%s: the response is %+v, but the command is read as %+v", action, c, again)
		}
	}
	var status struct {
		Telemetry struct {
			IsLocked *bool `json:"is_locked"`
		} `json:"telemetry"`
	}
	for _, want := range []bool{true, false, true} {
		action := telematics.Unlock
		if want {
			action = telematics.Lock
		}
		i.control(1, action)
		i.get("/api/v1/admin/vehicles/1/status", &status)
		if got := status.Telemetry.IsLocked; got == nil || *got != want {
			s.Errorf("directly after %s the status has is_locked %v", action, got)
		}
	}
	type line struct {
		Action  string `json:"action"`
		Outcome string `json:"outcome"`
	}
	var lines []line
	i.get("/api/v1/admin/activity?vehicle_id=1", &lines)
	// Only the entries of commands that were sent, and of their effects, are compared.
	lines = slices.DeleteFunc(lines, func(l line) bool { return l.Action == telematics.CommandsRead || l.Outcome == "not_executed" })
	assert.Equal(s, len(lines), len(telematics.ControlActions)+3+3, "audit entries")
}

// whisper publishes a message as a unit would.
func (s *stack) whisper(unit telematics.Unit, channel v1.Channel, payload []byte) {
	s.Helper()
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(s.units).SetClientID(string(unit)).
		SetUsername(string(unit)).SetPassword(mosquitto.UnitPassword(unitSecret, string(unit))))
	for _, say := range []func() mqtt.Token{
		client.Connect,
		func() mqtt.Token { return client.Publish(channel.Topic(unit), 1, false, payload) },
	} {
		if token := say(); !token.WaitTimeout(time.Minute) || token.Error() != nil {
			s.Fatalf("publish as a unit: %v", token.Error())
		}
	}
	client.Disconnect(100)
}
