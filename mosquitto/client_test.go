package mosquitto_test

import (
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// patience bounds every wait for something that must come.
const patience = time.Minute

// client is a connection whose every received message is kept.
type client struct {
	t    *testing.T
	paho paho.Client
	conn net.Conn

	mu       sync.Mutex // guards what follows
	received []message
	lost     bool
}

type message struct {
	topic, payload string
	retained       bool
}

// login is what a client introduces itself with.
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
		t.Fatalf("connect as %q: no answer", l.user)
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
	if err != nil {
		t.Fatalf("connect as %q: %v", l.user, err)
	}
	return c
}

func (c *client) take(_ paho.Client, m paho.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.received = append(c.received, message{m.Topic(), string(m.Payload()), m.Retained()})
}

// subscribe asks for a filter; whether it was granted shows in what is delivered.
func (c *client) subscribe(filters ...string) {
	c.t.Helper()
	for _, filter := range filters {
		if !c.paho.Subscribe(filter, 1, nil).WaitTimeout(patience) {
			c.t.Fatalf("subscribe to %s: no answer", filter)
		}
	}
}

// publish returns when the broker has acknowledged, which it does for a message that it drops, too.
func (c *client) publish(topic, payload string) { c.t.Helper(); c.send(topic, payload, false) }

func (c *client) publishRetained(topic, payload string) { c.t.Helper(); c.send(topic, payload, true) }

func (c *client) send(topic, payload string, retained bool) {
	c.t.Helper()
	if !c.paho.Publish(topic, 1, retained, payload).WaitTimeout(patience) {
		c.t.Fatalf("publish to %s: no acknowledgement", topic)
	}
}

// breakConnection ends the connection as a dead radio does, so that the last will speaks.
func (c *client) breakConnection() { _ = c.conn.Close() }

func (c *client) messages() []message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.received)
}

// await returns when a payload has come. Messages come in the order in which one sender sent them,
// so whatever that sender sent before has come by then, if it comes at all: this is what gives the
// absence of a message its meaning.
func (c *client) await(payload string) message {
	c.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		for _, m := range c.messages() {
			if m.payload == payload {
				return m
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("%q never came; what came: %+v", payload, c.messages())
		}
	}
}

// received only what is wanted, in any order and number.
func (c *client) onlyReceived(payloads ...string) {
	c.t.Helper()
	for _, m := range c.messages() {
		if !slices.Contains(payloads, m.payload) {
			c.t.Errorf("received %+v, want nothing but %q", m, payloads)
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
			c.t.Fatal("the connection was not ended")
		}
	}
}

// awaitLogin returns when a login works.
func awaitLogin(t *testing.T, l login) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		_, err := l.dial(t)
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("user %q cannot connect: %v", l.user, err)
		}
	}
}
