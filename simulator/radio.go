package simulator

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// Radio connects a unit to its broker. MQTT is the real one.
type Radio interface {
	// Dial returns a connection that is subscribed to the unit's commands. It calls deliver for
	// each command, from any goroutine; deliver must not block. Cancelling ctx afterwards does not
	// end the connection.
	Dial(ctx context.Context, login Login, deliver func(Message)) (Connection, error)
}

// Login is what a unit sends when it connects. Its client id is its serial [TOP-4].
type Login struct {
	Unit     telematics.Unit // the MQTT user name too
	Password string
	// Published by the broker, retained, on the presence topic when the connection breaks.
	Will []byte
}

// Message is what the broker delivered from the unit's command topic.
type Message struct {
	Payload  []byte
	Retained bool
}

// Connection is one MQTT connection. It is never used again once lost.
type Connection interface {
	// Publish sends a message at QoS 1. It blocks for a second at most.
	Publish(channel v1.Channel, payload []byte, retained bool) error
	Lost() <-chan struct{} // closed when the connection is gone
	Close()                // with DISCONNECT: the last will is not published
	Cut()                  // without: it is
}

// MQTT is the radio that speaks MQTT 3.1.1 over TCP or TLS.
type MQTT struct {
	// URL, tcp://host:port or tls://host:port. Defaults to tcp://127.0.0.1:1883.
	Broker string
	TLS    *tls.Config // for tls. Defaults to the system's certificates
}

const (
	localBroker    = "tcp://127.0.0.1:1883"
	keepAlive      = 30 * time.Second // at most a minute [TOP-2]
	qos            = 1
	connectTimeout = 10 * time.Second
	writeTimeout   = time.Second
	pingTimeout    = 10 * time.Second
	farewell       = 3000 // milliseconds at most for what is still to be written, and DISCONNECT
)

// Dial connects with a clean session and subscribes to the unit's commands. Every connection is a
// new client: paho's own reconnection would resend what has become old.
func (m MQTT) Dial(ctx context.Context, login Login, deliver func(Message)) (Connection, error) {
	c := &mqttConnection{unit: login.Unit, lost: make(chan struct{})}
	c.client = paho.NewClient(ClientOptions(cmp.Or(m.Broker, localBroker), login.Unit, login.Password).
		SetCleanSession(true). // [TOP-2]
		SetKeepAlive(keepAlive).SetPingTimeout(pingTimeout).SetWriteTimeout(writeTimeout).
		SetBinaryWill(v1.PresenceChannel.Topic(login.Unit), login.Will, qos, true).
		SetCustomOpenConnectionFn(c.Opener(ctx, m.TLS)).
		SetConnectionLostHandler(func(paho.Client, error) { c.gone() }))

	abort := context.AfterFunc(ctx, c.Cut)
	defer abort()
	if err := finished(ctx, c.client.Connect()); err != nil {
		c.Cut()
		return nil, fmt.Errorf("connect to %s: %w", m.Broker, err)
	}
	topic := v1.CommandChannel.Topic(login.Unit)
	token := c.client.Subscribe(topic, qos, func(_ paho.Client, msg paho.Message) {
		deliver(Message{Payload: msg.Payload(), Retained: msg.Retained()})
	})
	err := finished(ctx, token)
	// paho reports a refused subscription in the result only.
	if sub, ok := token.(*paho.SubscribeToken); err == nil && ok && sub.Result()[topic] >= 0x80 {
		err = errors.New("refused")
	}
	if err != nil {
		c.Cut()
		return nil, fmt.Errorf("subscribe to %s: %w", topic, err)
	}
	return c, nil
}

// ClientOptions returns the settings of a unit's MQTT client, of any protocol, that is used for one
// connection.
func ClientOptions(broker string, unit telematics.Unit, password string) *paho.ClientOptions {
	return paho.NewClientOptions().AddBroker(broker).SetProtocolVersion(4).
		SetClientID(string(unit)).SetUsername(string(unit)).SetPassword(password).
		SetConnectTimeout(connectTimeout).SetAutoReconnect(false).SetConnectRetry(false)
}

func finished(ctx context.Context, token paho.Token) error {
	timeout := time.NewTimer(connectTimeout)
	defer timeout.Stop()
	select {
	case <-token.Done():
		return token.Error()
	case <-timeout.C:
		return errors.New("no answer from the broker")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// mqttConnection is one paho client, used for one connection.
type mqttConnection struct {
	unit   telematics.Unit
	client paho.Client
	lost   chan struct{}
	once   sync.Once
	Line
}

// Line is a TCP or TLS connection that can be cut without the MQTT client. The zero value is not
// open yet.
type Line struct {
	mu   sync.Mutex // guards what follows
	conn net.Conn   // nil before it is open
	cut  bool
}

// Opener returns a function that opens the line for an MQTT client, until ctx ends. A nil config
// has the system's certificates.
func (l *Line) Opener(ctx context.Context, config *tls.Config) paho.OpenConnectionFunc {
	return func(broker *url.URL, _ paho.ClientOptions) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, connectTimeout)
		defer cancel()
		conn, err := dialer(broker.Scheme, config)(ctx, "tcp", broker.Host)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cut {
			return nil, errors.Join(net.ErrClosed, conn.Close())
		}
		l.conn = conn
		return severable{conn}, nil
	}
}

// Cut ends the connection, or the attempt at one.
func (l *Line) Cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = true
	if l.conn != nil {
		// It is closed either way; paho may have been first.
		_ = l.conn.Close()
	}
}

// severable is a connection that may be closed without paho. paho takes the error of a closed
// connection for its own close, and would wait forever for the end of that.
type severable struct{ net.Conn }

func (s severable) Read(b []byte) (int, error) {
	n, err := s.Conn.Read(b)
	if errors.Is(err, net.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

func dialer(scheme string, config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	switch scheme {
	case "tcp", "mqtt":
		return new(net.Dialer).DialContext
	case "tls", "ssl", "mqtts":
		return (&tls.Dialer{Config: config}).DialContext
	}
	return func(context.Context, string, string) (net.Conn, error) {
		return nil, fmt.Errorf("scheme %q: want tcp or tls", scheme)
	}
}

func (c *mqttConnection) Publish(channel v1.Channel, payload []byte, retained bool) error {
	token := c.client.Publish(channel.Topic(c.unit), qos, retained, payload)
	select {
	case <-token.Done(): // immediately only where it could not be handed over
		if err := token.Error(); err != nil {
			return fmt.Errorf("publish %s: %w", channel, err)
		}
	default: // the broker's receipt comes later
	}
	return nil
}

func (c *mqttConnection) Lost() <-chan struct{} { return c.lost }

func (c *mqttConnection) Close() {
	c.client.Disconnect(farewell)
	c.Cut()
}

func (c *mqttConnection) Cut() {
	c.Line.Cut()
	c.gone()
}

func (c *mqttConnection) gone() { c.once.Do(func() { close(c.lost) }) }
