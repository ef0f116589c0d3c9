package mosquitto_test

import (
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/internal/require"
)

// patience limits every wait.
const patience = time.Minute

// client is a connection that keeps every message it receives.
type client struct {
	t    *testing.T
	paho paho.Client
	conn net.Conn

	mu       sync.Mutex // guards the field below
	received []message
	lost     bool
}

type message struct {
	topic, payload string
	retained       bool
}

// login is the name, password and address with which a client connects.
type login struct {
	url, id, user, password string
	willTopic, willPayload  string
	tune                    func(*paho.ClientOptions)
}

// dial connects; the error is that of a refused connection.
func (l login) dial(t *testing.T) (*client, error) {
	t.Helper()
	c := &client{t: t}
	o := paho.NewClientOptions().AddBroker(l.url).SetClientID(l.id).SetUsername(l.user).SetPassword(l.password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetConnectTimeout(patience).
		SetDefaultPublishHandler(c.take).
		SetConnectionLostHandler(func(paho.Client, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.lost = true
		})
	if l.willTopic != "" {
		o.SetWill(l.willTopic, l.willPayload, 1, true)
	}
	if l.tune != nil {
		l.tune(o)
	} else {
		o.SetCustomOpenConnectionFn(func(uri *url.URL, _ paho.ClientOptions) (net.Conn, error) {
			var err error
			c.conn, err = net.DialTimeout("tcp", uri.Host, patience)
			return c.conn, err
		})
	}
	c.paho = paho.NewClient(o)
	token := c.paho.Connect()
	if !token.WaitTimeout(patience) {
		t.Fatalf("connect as %q: no response", l.user)
	}
	if token.Error() != nil {
		return nil, token.Error()
	}
	t.Cleanup(func() { c.paho.Disconnect(0) })
	return c, nil
}

func (l login) mustDial(t *testing.T) *client {
	t.Helper()
	c, err := l.dial(t)
	require.NoError(t, err, "connect as %q", l.user)
	return c
}

func (c *client) take(_ paho.Client, m paho.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, message{m.Topic(), string(m.Payload()), m.Retained()})
}

// subscribe subscribes to filters; the delivered messages show whether the broker granted them.
func (c *client) subscribe(filters ...string) {
	c.t.Helper()
	for _, filter := range filters {
		if !c.paho.Subscribe(filter, 1, nil).WaitTimeout(patience) {
			c.t.Fatalf("the subscription to %s was not acknowledged", filter)
		}
	}
}

// publish returns when the broker has acknowledged the message; it also acknowledges one that it
// drops.
func (c *client) publish(topic, payload string) { c.t.Helper(); c.send(topic, payload, false) }

func (c *client) publishRetained(topic, payload string) { c.t.Helper(); c.send(topic, payload, true) }

func (c *client) send(topic, payload string, retained bool) {
	c.t.Helper()
	if !c.paho.Publish(topic, 1, retained, payload).WaitTimeout(patience) {
		c.t.Fatalf("the publication to %s was not acknowledged", topic)
	}
}

// breakConnection ends the connection as a failed radio does, so that the broker publishes the last
// will.
func (c *client) breakConnection() { _ = c.conn.Close() }

func (c *client) messages() []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.received)
}

// await returns when a payload has arrived. The messages of one sender arrive in the order in which
// they were sent, so all that it sent before has arrived by then, if it was delivered: this shows
// that a missing message was not delivered.
func (c *client) await(payload string) message {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		for _, m := range c.messages() {
			if m.payload == payload {
				return m
			}
		}
		if time.Now().After(deadline) {
			require.Late(c.t, "%q was not received; received were %+v", payload, c.messages())
		}
	}
}

// onlyReceived checks that all received messages have one of the payloads, in any order and number.
func (c *client) onlyReceived(payloads ...string) {
	c.t.Helper()
	for _, m := range c.messages() {
		if !slices.Contains(payloads, m.payload) {
			c.t.Errorf("received %+v, want only %q", m, payloads)
		}
	}
}

func (c *client) connected() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.lost
}

// awaitLost returns when the broker has ended the connection.
func (c *client) awaitLost() {
	c.t.Helper()
	for deadline := time.Now().Add(patience); c.connected(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Late(c.t, "the broker did not end the connection")
		}
	}
}

// awaitLogin returns when a login succeeds.
func awaitLogin(t *testing.T, l login) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, err := l.dial(t)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			require.Late(t, "user %q cannot connect: %v", l.user, err)
		}
	}
}
