package devstack_test

import (
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

func TestMosquitto_KeepsPresenceAcrossARestart(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	m, err := devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: t.TempDir(), Units: map[string]string{"car": "car"}, ServicePassword: "secret",
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	unit := dialMQTT(t, m.UnitsURL(), "", "car", "car", ignore)
	if !unit.Publish("motorpool/v1/car/presence", 1, true, "standby").WaitTimeout(patience) {
		t.Fatal("the publication was not acknowledged")
	}
	require.NoError(t, m.Restart())
	heard := make(chan paho.Message, 1)
	service := dialMQTT(t, m.ServiceURL(), "instance", mosquitto.ServiceUser, "secret", func(p paho.Message) { heard <- p })
	service.mustSubscribe(t, "motorpool/v1/+/presence")
	select {
	case p := <-heard:
		if string(p.Payload()) != "standby" || !p.Retained() {
			t.Errorf("received %q, retained %v; want standby, retained", p.Payload(), p.Retained())
		}
	case <-time.After(patience):
		t.Error("the retained presence was not received")
	}
}

func TestMosquitto_GatewayReceivesCommandsToUnits(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.MosquittoServer)
	m, err := devstack.StartMosquitto(devstack.MosquittoConfig{
		Dir: t.TempDir(), Units: map[string]string{"car": "car"}, ServicePassword: "secret", GatewayPassword: "eyes",
	})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	heard := make(chan paho.Message, 1)
	gateway := dialMQTT(t, m.ServiceURL(), "gateway", devstack.GatewayUser, "eyes", func(p paho.Message) { heard <- p })
	gateway.mustSubscribe(t, "motorpool/v1/+/command")
	service := dialMQTT(t, m.ServiceURL(), "instance", mosquitto.ServiceUser, "secret", ignore)
	if !service.Publish("motorpool/v1/car/command", 1, false, "lock").WaitTimeout(patience) {
		t.Fatal("the publication was not acknowledged")
	}
	select {
	case p := <-heard:
		if string(p.Payload()) != "lock" {
			t.Errorf("received %q, want lock", p.Payload())
		}
	case <-time.After(patience):
		t.Error("the gateway received nothing")
	}
}
