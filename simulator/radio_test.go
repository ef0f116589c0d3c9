package simulator

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/signing"
	v1 "motorpool/telematics/v1"
)

// allow accepts every client, and refuses some subscriptions.
type allow struct {
	mochi.HookBase
	but []v1.Channel
}

func (*allow) ID() string { return "allow" }
func (*allow) Provides(h byte) bool {
	return h == mochi.OnConnectAuthenticate || h == mochi.OnACLCheck
}
func (*allow) OnConnectAuthenticate(*mochi.Client, packets.Packet) bool { return true }
func (a *allow) OnACLCheck(_ *mochi.Client, topic string, write bool) bool {
	_, channel, err := v1.ParseTopic(topic)
	return err != nil || write || !slices.Contains(a.but, channel)
}

// broker is a plain MQTT broker that also receives messages like the service.
type broker struct {
	*testing.T
	server *mochi.Server
	url    string
	key    signing.Key

	mu       sync.Mutex // guards heard
	messages []heardMessage
}

type heardMessage struct {
	unit     telematics.Unit
	channel  v1.Channel
	payload  []byte
	retained bool
}

func startBroker(t *testing.T, but ...v1.Channel) *broker {
	t.Helper()
	b := &broker{T: t, key: newKey(t), server: mochi.New(&mochi.Options{InlineClient: true, Logger: slog.New(slog.DiscardHandler)})}
	listener := listeners.NewTCP(listeners.Config{ID: "units", Address: "127.0.0.1:0"})
	for _, err := range []error{b.server.AddHook(&allow{but: but}, nil), b.server.AddListener(listener), b.server.Serve()} {
		require.NoError(t, err)
	}
	t.Cleanup(func() {
		// mochi takes a read lock twice when it closes: a client that disconnects in between blocks
		// it permanently. The client of the broker itself stays.
		eventually(t, "empty broker", func() bool { return b.server.Clients.Len() <= 1 })
		assert.NoError(t, b.server.Close())
	})
	b.url = "tcp://" + listener.Address()
	for i, c := range []v1.Channel{v1.AckChannel, v1.TelemetryChannel, v1.PresenceChannel} {
		require.NoError(t, b.server.Subscribe(c.Filter(), i+1, b.hear))
	}
	return b
}

func (b *broker) hear(_ *mochi.Client, _ packets.Subscription, p packets.Packet) {
	unit, channel, err := v1.ParseTopic(p.TopicName)
	if err != nil {
		b.Error(err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.messages = append(b.messages, heardMessage{unit, channel, slices.Clone(p.Payload), p.FixedHeader.Retain})
}

func (b *broker) heard(unit telematics.Unit, channel v1.Channel) []heardMessage {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(b.messages), func(n heardMessage) bool { return n.unit != unit || n.channel != channel })
}

func (b *broker) answers(unit telematics.Unit, id telematics.CommandID) []telematics.Answer {
	b.Helper()
	var list []telematics.Answer
	for _, n := range b.heard(unit, v1.AckChannel) {
		a, _, err := v1.DecodeAnswer(n.payload, time.Now())
		require.NoError(b, err)
		if a.Command == id {
			list = append(list, a)
		}
	}
	return list
}

func (b *broker) presences(unit telematics.Unit) []telematics.Presence {
	b.Helper()
	var list []telematics.Presence
	for _, n := range b.heard(unit, v1.PresenceChannel) {
		p, err := v1.DecodePresence(n.payload, time.Now())
		require.NoError(b, err)
		list = append(list, p)
	}
	return list
}

// online waits until the broker has received a session other than the one before. The state of the
// car changes earlier when it connects, and later when it is cut.
func (b *broker) online(unit telematics.Unit, before string) (session string) {
	b.Helper()
	eventually(b.T, "new session", func() bool {
		for _, p := range b.presences(unit) {
			if p.Status == telematics.Online && p.Session != before {
				session = p.Session
			}
		}
		return session != ""
	})
	return session
}

// order publishes a command and waits for its final answer.
func (b *broker) order(unit telematics.Unit, action telematics.Action, seq int64) telematics.Answer {
	b.Helper()
	return b.final(unit, b.send(unit, action, seq))
}

// send publishes a command.
func (b *broker) send(unit telematics.Unit, action telematics.Action, seq int64) telematics.CommandID {
	b.Helper()
	now := time.Now().Truncate(time.Second)
	c := telematics.Claims{
		Command: newID(), Unit: unit, Action: action, Lane: action.Lane(), Seq: seq,
		IssuedAt: now, Expires: now.Add(20 * time.Second),
	}
	b.publish(unit, sign(b.T, b.key, c), false)
	return c.Command
}

// final waits for the final answer to a command.
func (b *broker) final(unit telematics.Unit, id telematics.CommandID) telematics.Answer {
	b.Helper()
	var final telematics.Answer
	eventually(b.T, "final answer", func() bool {
		for _, a := range b.answers(unit, id) {
			if a.State.IsFinal() {
				final = a
			}
		}
		return final.State != ""
	})
	return final
}

func (b *broker) publish(unit telematics.Unit, message []byte, retain bool) {
	b.Helper()
	require.NoError(b, b.server.Publish(v1.CommandChannel.Topic(unit), message, retain, 1))
}

// live runs a car until the test ends, or until stop is called.
func (b *broker) live(config Config) (car *Car, stop func()) {
	b.Helper()
	config.Broker, config.Keyring = b.url, b.key.Keyring()
	car = NewCar(config)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- car.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		assert.NoError(b, <-done, "Run")
	})
	b.Cleanup(stop)
	return car, stop
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Late(t, "within a minute this did not happen: %s", what)
		}
	}
}

func TestMQTT_CarExecutesAndReports(t *testing.T) {
	b := startBroker(t)
	now := time.Now().Truncate(time.Second)
	retained := telematics.Claims{
		Command: newID(), Unit: "unit-1", Action: telematics.LockAndDisableDriving, Lane: telematics.AccessLane, Seq: 1,
		IssuedAt: now, Expires: now.Add(30 * time.Second),
	}
	b.publish("unit-1", sign(t, b.key, retained), true) // neither executed nor answered
	car, stop := b.live(Config{Unit: "unit-1"})
	eventually(t, "connection", car.Connected)
	client, ok := b.server.Clients.Get("unit-1") // [TOP-4]
	if !ok || !client.Properties.Clean || client.State.Keepalive > 60 || string(client.Properties.Username) != "unit-1" {
		t.Fatalf("client %+v, want a clean session, a keep-alive of at most 60 s and the unit as user name", client)
	}
	says(t, b.order("unit-1", telematics.Unlock, 1), telematics.Succeeded, "", "")
	says(t, b.order("unit-1", telematics.OpenTopCase, 2), telematics.Rejected, telematics.Unsupported, "")
	if body := car.Body(); body.Locked || body.Immobilizer == Engaged || len(b.answers("unit-1", retained.Command)) > 0 {
		t.Errorf("locked %t, immobilizer %s; want only the unlock executed and answered", body.Locked, body.Immobilizer)
	}
	eventually(t, "report", func() bool { return len(b.heard("unit-1", v1.TelemetryChannel)) >= 2 })
	stop()
	eventually(t, "standby", func() bool {
		said := b.presences("unit-1")
		return said[len(said)-1].Status == telematics.Standby
	})
	for _, p := range b.presences("unit-1") {
		if p.Status == telematics.Offline {
			t.Error("a last will was published after a DISCONNECT")
		}
	}
}

func TestMQTT_CutConnectionLeavesTheLastWillOfItsSession(t *testing.T) {
	b := startBroker(t)
	car, _ := b.live(Config{Unit: "unit-2"})
	session := b.online("unit-2", "")
	car.Cut()
	eventually(t, "last will", func() bool {
		return slices.ContainsFunc(b.presences("unit-2"), func(p telematics.Presence) bool {
			return p.Status == telematics.Offline && p.Session == session
		})
	})
	b.online("unit-2", session)
	says(t, b.order("unit-2", telematics.Unlock, 1), telematics.Succeeded, "", "")
}

func TestMQTT_CarRunsWithoutABroker(t *testing.T) {
	// No server listens on this port.
	car := NewCar(Config{Unit: "unit-4", Broker: "tcp://127.0.0.1:1"})
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if err := car.Run(ctx); err != nil || car.Connected() {
		t.Errorf("Run = %v, connected %t; want neither an error nor a connection", err, car.Connected())
	}
	odd := NewCar(Config{Unit: "unit-4", Broker: "quic://127.0.0.1:1"})
	ctx, cancel = context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := odd.Run(ctx); err != nil || odd.Connected() {
		t.Errorf("Run = %v, connected %t; want neither an error nor a connection", err, odd.Connected())
	}
}

func TestMQTT_RefusedSubscriptionIsNoConnection(t *testing.T) {
	b := startBroker(t, v1.CommandChannel)
	car, _ := b.live(Config{Unit: "unit-6"})
	// The last will is that of a connection that the car ended.
	eventually(t, "attempt", func() bool { return len(b.presences("unit-6")) > 0 })
	if p := b.presences("unit-6")[0]; p.Status != telematics.Offline || car.Connected() {
		t.Errorf("presence %+v, connected %t; want offline, not connected", p, car.Connected())
	}
}
