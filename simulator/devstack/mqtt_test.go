package devstack_test

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/mosquitto"
	"motorpool/simulator/devstack"
)

// startMQTT starts an embedded broker in which the password of every unit is its name.
func startMQTT(t *testing.T) *devstack.MQTT {
	t.Helper()
	m, err := devstack.StartMQTT(devstack.MQTTConfig{
		UnitPassword:    func(user string) (string, bool) { return user, true },
		ServicePassword: "secret",
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		for range 2 {
			assert.NoError(t, m.Close())
		}
	})
	return m
}

// mqttClient is a connection that passes its messages to a function.
type mqttClient struct {
	paho.Client
	lost chan struct{}
}

func dialMQTT(t *testing.T, address, id, user, password string, onMessage func(paho.Message)) *mqttClient {
	t.Helper()
	c := &mqttClient{lost: make(chan struct{})}
	c.Client = paho.NewClient(paho.NewClientOptions().AddBroker(address).SetClientID(id).SetUsername(user).SetPassword(password).
		SetAutoReconnect(false).SetConnectTimeout(patience).
		SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { onMessage(m) }).
		SetConnectionLostHandler(func(paho.Client, error) { close(c.lost) }))
	if token := c.Connect(); !token.WaitTimeout(patience) || token.Error() != nil {
		t.Fatalf("connect as %q: %v", user, token.Error())
	}
	t.Cleanup(func() { c.Disconnect(0) })
	return c
}

func (c *mqttClient) mustPublish(t *testing.T, topic string, payload any) {
	t.Helper()
	if !c.Publish(topic, 1, false, payload).WaitTimeout(patience) {
		t.Fatalf("the publication to %s was not acknowledged", topic)
	}
}

func (c *mqttClient) mustSubscribe(t *testing.T, filter string) {
	t.Helper()
	token := c.Subscribe(filter, 1, nil)
	if !token.WaitTimeout(patience) {
		t.Fatalf("the subscription to %s was not acknowledged", filter)
	}
	if granted := token.(*paho.SubscribeToken).Result()[filter]; granted > 2 {
		t.Fatalf("the subscription to %s was refused (%#x)", filter, granted)
	}
}

func ignore(paho.Message) {}

func TestMQTT_ReconnectedUnitReceivesItsCommands(t *testing.T) {
	m := startMQTT(t)
	service := dialMQTT(t, m.ServiceURL(), "instance", mosquitto.ServiceUser, "secret", ignore)
	var previous *mqttClient
	for i := range 20 {
		heard := make(chan string, 10)
		unit := dialMQTT(t, m.UnitsURL(), fmt.Sprintf("id-%d", i), "car", "car", func(p paho.Message) { heard <- string(p.Payload()) })
		unit.mustSubscribe(t, "motorpool/v1/car/command")
		service.mustPublish(t, "motorpool/v1/car/command", fmt.Sprintf("command %d", i))
		select {
		case got := <-heard:
			if want := fmt.Sprintf("command %d", i); got != want {
				t.Fatalf("received %q, want %q", got, want)
			}
		case <-time.After(patience):
			t.Fatalf("connection %d receives nothing", i)
		}
		if previous != nil {
			select {
			case <-previous.lost:
			case <-time.After(patience):
				t.Fatalf("connection %d was not closed by its successor", i-1)
			}
		}
		previous = unit
	}
}

func TestMQTT_DeniedPublicationIsAcknowledgedAndKeepsTheConnection(t *testing.T) {
	m := startMQTT(t)
	heard := make(chan string, 10)
	service := dialMQTT(t, m.ServiceURL(), "instance", mosquitto.ServiceUser, "secret", func(p paho.Message) { heard <- p.Topic() })
	service.mustSubscribe(t, "motorpool/v1/+/ack")
	unit := dialMQTT(t, m.UnitsURL(), "", "car", "car", ignore)
	unit.mustPublish(t, "motorpool/v1/other/ack", "forged")
	unit.mustPublish(t, "motorpool/v1/car/ack", "genuine")
	select {
	case got := <-heard:
		if got != "motorpool/v1/car/ack" {
			t.Errorf("received a message on %s, want motorpool/v1/car/ack", got)
		}
	case <-time.After(patience):
		t.Error("the permitted message was not received")
	}
}

func TestMQTT_UnitPasswordIsReadAtEveryConnect(t *testing.T) {
	var password atomic.Value
	password.Store("first")
	m, err := devstack.StartMQTT(devstack.MQTTConfig{UnitPassword: func(string) (string, bool) { return password.Load().(string), true }})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	connects := func(with string) bool {
		client := paho.NewClient(
			paho.NewClientOptions().AddBroker(m.UnitsURL()).SetUsername("car").SetPassword(with).SetAutoReconnect(false),
		)
		token := client.Connect()
		defer client.Disconnect(0)
		return token.WaitTimeout(patience) && token.Error() == nil
	}
	if !connects("first") || connects("second") {
		t.Fatal("the first password is refused, or another accepted")
	}
	password.Store("second")
	if !connects("second") || connects("first") {
		t.Error("the second password is refused, or the first still accepted")
	}
}

func TestMQTT_ClientThatDoesNotReadDelaysNoOther(t *testing.T) {
	m := startMQTT(t)
	const reports = 200
	frozen := make(chan struct{})
	deaf := dialMQTT(t, m.ServiceURL(), "deaf", mosquitto.ServiceUser, "secret", func(paho.Message) { <-frozen })
	t.Cleanup(func() { close(frozen) })
	deaf.mustSubscribe(t, "motorpool/v1/+/telemetry")
	var heard atomic.Int64
	service := dialMQTT(t, m.ServiceURL(), "instance", mosquitto.ServiceUser, "secret", func(paho.Message) { heard.Add(1) })
	service.mustSubscribe(t, "motorpool/v1/+/telemetry")

	unit := dialMQTT(t, m.UnitsURL(), "", "car", "car", ignore)
	report := []byte(strings.Repeat("x", 100<<10)) // together more than the socket buffers hold
	for range reports {
		unit.mustPublish(t, "motorpool/v1/car/telemetry", report)
	}
	eventually(t, "the other instance to get every report", func() bool { return heard.Load() == reports })
}

func TestMQTT_CloseEndsConnectionsWithoutConnect(t *testing.T) {
	m := startMQTT(t)
	u, err := url.Parse(m.UnitsURL())
	require.NoError(t, err)
	conn, err := net.Dial("tcp", u.Host)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	closed := make(chan error, 1)
	go func() { closed <- m.Close() }()
	select {
	case err := <-closed:
		assert.NoError(t, err)
	case <-time.After(patience):
		t.Fatal("Close waits for a connection that sent nothing")
	}
}
