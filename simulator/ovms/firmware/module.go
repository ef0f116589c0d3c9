package firmware

import (
	"context"
	"net"
	"net/url"
	"strings"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
)

// Config is the part of a module's configuration that is about MQTT, and of the vehicle that it is
// built into.
type Config struct {
	Broker         string // MQTT URL
	User, Password string
	VehicleID      string
	Include        []string      // metrics.include. Defaults to all
	Keepalive      time.Duration // updatetime.keepalive. Defaults to 29 minutes
	Doors          time.Duration // from a command until the vehicle reports its locks
	ReadOnly       bool          // canwrite is off: the vehicle takes no command
	// Second is how long one takes: a test need not wait for real ones. Defaults to a second.
	Second time.Duration
}

// The firmware's defaults, in seconds: server, constructor of OvmsServerV3.
const (
	everyIdle      = 600
	everyConnected = 10
	everyOn        = 5
	everyAwake     = 60
	everyAll       = 1200
	keepalive      = 29 * time.Minute
	stableWait     = 10  // of a network before the first connection
	lease          = 120 // of a client that is active: server, AddClient
	retryLost      = 60  // after a connection was lost: server, MG_EV_CLOSE
	retryFailed    = 30  // after it could not be made: server, MG_EV_CONNECT
	perCall        = 100 // metrics of a transmission of all in one second
)

// Module is an OVMS module with firmware 3. Run executes the calls of all other methods, in order.
type Module struct {
	config Config
	prefix string
	tasks  chan func()

	// Of Run alone.
	now       int // seconds since power came: m.monotonic
	metrics   metrics
	clients   map[string]int // until when each is active
	peers     int
	conn      net.Conn
	mqtt      paho.Client
	connected bool
	retryAt   int
	suspended bool // a login was refused: no retry until the configuration changes
	mustSub   bool // m_sendall: the first tick after a login subscribes and transmits all
	sentAll   int  // when all were sent last
	sent      int  // when modified ones were; 0: send at the next tick
	next      int  // index of the metric with which a transmission of all goes on; 0: complete
	pending   []notification
}

// New returns a module without power.
func New(c Config) *Module {
	if c.Second == 0 {
		c.Second = time.Second
	}
	if c.Keepalive == 0 {
		c.Keepalive = keepalive
	}
	// server, Connect: without topic.prefix.
	return &Module{
		config: c, prefix: "ovms/" + c.User + "/" + c.VehicleID + "/", tasks: make(chan func(), 1024),
		clients: map[string]int{}, retryAt: stableWait,
	}
}

// Run runs the module until ctx ends. Then the connection ends without DISCONNECT, as the firmware
// ends every one, so that the broker publishes the last will (server, Disconnect).
func (m *Module) Run(ctx context.Context) {
	defer m.hangUp()
	second := time.NewTicker(m.config.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case task := <-m.tasks:
			task()
		case <-second.C:
			m.tick()
		}
	}
}

// do lets Run do something, in order.
func (m *Module) do(task func()) { m.tasks <- task }

// Set lets the vehicle report a value.
func (m *Module) Set(name string, value any) { m.do(func() { m.set(name, value) }) }

// Notify raises a notification: type info, error or alert.
func (m *Module) Notify(kind, subtype, text string) {
	m.do(func() { m.notify(notification{kind, subtype, text}) })
}

// LoseNetwork ends the connection. The module connects again after a minute of its seconds.
func (m *Module) LoseNetwork() { m.do(m.hangUp) }

// Reconnect lets the pause before the next connection end.
func (m *Module) Reconnect() { m.do(func() { m.retryAt = 0 }) }

func (m *Module) hangUp() {
	if m.conn != nil {
		_ = m.conn.Close()
		m.mqtt.Disconnect(0)
	}
	m.lost(retryLost)
}

func (m *Module) lost(retry int) {
	m.conn, m.mqtt, m.connected = nil, nil, false
	m.retryAt = m.now + retry
	m.metrics.set("s.v3.connected", false)
	m.metrics.set("s.v3.peers", 0)
}

// connect logs in: no clean session, a will without QoS that is retained. The user's name is part
// of the topics, the vehicle's id is the client id (server, Connect and MG_EV_CONNECT).
func (m *Module) connect() {
	var conn net.Conn
	o := paho.NewClientOptions().AddBroker(m.config.Broker).SetProtocolVersion(4).SetClientID(m.config.VehicleID).
		SetUsername(m.config.User).SetPassword(m.config.Password).SetCleanSession(false).
		SetWill(m.prefix+"metric/s/v3/connected", "no", 0, true).SetKeepAlive(m.config.Keepalive).
		SetAutoReconnect(false).SetConnectRetry(false).SetOrderMatters(true).SetConnectTimeout(10 * time.Second).
		SetCustomOpenConnectionFn(func(uri *url.URL, _ paho.ClientOptions) (net.Conn, error) {
			var err error
			conn, err = net.DialTimeout("tcp", uri.Host, 10*time.Second)
			return conn, err
		}).
		SetDefaultPublishHandler(func(_ paho.Client, msg paho.Message) {
			topic, payload := msg.Topic(), string(msg.Payload())
			m.do(func() { m.incoming(topic, payload) })
		}).
		SetConnectionLostHandler(func(paho.Client, error) {
			m.do(func() {
				if m.conn == conn {
					m.lost(retryLost)
				}
			})
		})
	client := paho.NewClient(o)
	token := client.Connect()
	if token.Wait(); token.Error() != nil {
		var refused bool
		if c, ok := token.(*paho.ConnectToken); ok {
			code := c.ReturnCode()
			refused = code >= 1 && code <= 5 && code != 3
		}
		if refused { // MG_EV_MQTT_CONNACK: not the server's fault
			m.suspended = true
		}
		m.lost(retryFailed)
		return
	}
	m.conn, m.mqtt, m.connected, m.mustSub, m.next = conn, client, true, true, 0
	m.metrics.set("s.v3.connected", true)
	m.signal("server.v3.connected")
}

// tick is what the module does each second: server, Ticker1.
func (m *Module) tick() {
	m.now++
	m.metrics.set("m.monotonic", m.now)
	if !m.connected {
		if m.now >= m.retryAt && !m.suspended {
			m.connect()
		}
		return
	}
	if m.mustSub {
		m.mustSub = false
		m.subscribe()
		m.transmitAll()
	}
	for _, kind := range []string{"info", "error", "alert"} {
		m.sendPending(kind)
	}
	every := everyIdle
	switch {
	case m.is("v.e.on"):
		every = everyOn
	case m.is("v.c.charging"), m.peers > 0:
		every = everyConnected
	case m.is("v.e.awake"):
		every = everyAwake
	}
	switch {
	case m.next > 0, m.now > m.sentAll+everyAll:
		m.transmitAll()
	case m.sent == 0, m.now > m.sent+every:
		m.transmitModified()
	}
}

func (m *Module) is(name string) bool {
	at, ok := m.metrics.find(name)
	return ok && m.metrics[at].value == "yes"
}

// subscribe asks for four filters with QoS 1, and does not look at the answer (server, Ticker1 and
// MG_EV_MQTT_SUBACK).
func (m *Module) subscribe() {
	filters := map[string]byte{}
	for _, below := range []string{"active", "command/+", "request/metric", "request/config"} {
		filters[m.prefix+"client/+/"+below] = 1
	}
	m.mqtt.SubscribeMultiple(filters, nil)
}

// incoming is server, IncomingMsg.
func (m *Module) incoming(topic, payload string) {
	rest, ok := strings.CutPrefix(topic, m.prefix+"client/")
	if !ok {
		return
	}
	client, rest, ok := strings.Cut(rest, "/")
	if !ok {
		return
	}
	if id, isCommand := strings.CutPrefix(rest, "command/"); isCommand {
		m.publish("client/"+client+"/response/"+id, m.run(payload), 1, false)
		return
	}
	switch rest {
	case "active":
		if payload == "" || payload == "0" {
			delete(m.clients, client)
		} else {
			m.clients[client] = m.now + lease
		}
		m.countClients()
	case "request/metric":
		for _, metric := range m.metrics {
			if passes(strings.Split(payload, ","), metric.name) {
				m.transmit(metric)
			}
		}
	}
}

// countClients is server, CountClients.
func (m *Module) countClients() {
	for client, until := range m.clients {
		if until < m.now {
			delete(m.clients, client)
		}
	}
	n := len(m.clients)
	m.metrics.set("s.v3.peers", n)
	was := m.peers
	m.peers = n
	if n == was {
		return
	}
	m.sent = 0
	if n == 0 {
		m.signal("app.disconnected")
	} else {
		m.signal("app.connected")
	}
}

// publish does not wait.
func (m *Module) publish(below, payload string, qos byte, retain bool) {
	if m.connected {
		m.mqtt.Publish(m.prefix+below, qos, retain, payload)
	}
}
