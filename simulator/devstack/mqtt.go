package devstack

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"sync"

	mochi "github.com/mochi-mqtt/server/v2"
)

// MQTTConfig configures the listeners and accounts of the embedded MQTT broker.
type MQTTConfig struct {
	UnitsAddr   string // where units connect. Defaults to a free port of 127.0.0.1
	ServiceAddr string // where the service connects. Defaults to a free port of 127.0.0.1

	ServiceAccess string // text of a Mosquitto access file. Defaults to mosquitto.ServiceACL

	// UnitPassword returns a unit's password; false if there is no such unit. It is called at every
	// connect, from any goroutine, so the fleet may change at any time. Defaults to no units.
	UnitPassword func(user string) (string, bool)

	ServicePassword string // of mosquitto.ServiceUser. Defaults to none: the service cannot connect

	// NothingShared reports whether shared subscriptions are granted and get no messages at the
	// moment, as with MQTT brokers that do not support them. It is called from any goroutine.
	// Defaults to never.
	NothingShared func() bool

	Logger *slog.Logger // Defaults to silence
}

// MQTT is an MQTT broker in this process that behaves as the production Mosquitto does: two
// listeners with separate accounts and access files; forced client ids for units [TOP-4]; denied
// messages are dropped, and acknowledged nevertheless.
//
// It is stricter in one point: Mosquitto grants every subscription and then withholds the messages,
// the embedded broker refuses the subscription, so that no client can join a shared group whose
// messages it may not read [TOP-3].
type MQTT struct {
	server  *mochi.Server
	units   *mqttListener
	service *mqttListener
	close   sync.Once
}

// StartMQTT starts the broker, and returns when it accepts connections. The error for an address in
// use is a syscall.EADDRINUSE.
func StartMQTT(cfg MQTTConfig) (*MQTT, error) {
	log := cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	hook, err := newMQTTHook(cfg, log)
	if err != nil {
		return nil, err
	}
	units, err := listenMQTT(unitsListener, cmp.Or(cfg.UnitsAddr, "127.0.0.1:0"), log)
	if err != nil {
		return nil, err
	}
	service, err := listenMQTT(serviceListener, cmp.Or(cfg.ServiceAddr, "127.0.0.1:0"), log)
	if err != nil {
		_ = units.Listener.Close()
		return nil, err
	}

	server := mochi.New(&mochi.Options{
		Capabilities: capabilities(),
		// The hook says what a reader of the log can use; the library's own lines dump whole
		// packets.
		Logger:                 slog.New(slog.DiscardHandler),
		SysTopicResendInterval: 10,
	})
	m := &MQTT{server: server, units: units, service: service}
	if err := m.serve(hook); err != nil {
		_ = m.Close()
		return nil, fmt.Errorf("start the embedded MQTT broker: %w", err)
	}
	return m, nil
}

func (m *MQTT) serve(hook *mqttHook) error {
	if err := m.server.AddHook(hook, nil); err != nil {
		return err
	}
	for _, l := range []*mqttListener{m.units, m.service} {
		if err := m.server.AddListener(l); err != nil {
			return err
		}
	}
	return m.server.Serve()
}

func capabilities() *mochi.Capabilities {
	c := mochi.NewDefaultServerCapabilities()
	// The queue of the service, which may be slower than thousands of cars. It is allocated for
	// every client (32 KiB each).
	c.MaximumClientWritesPending = 4096
	c.MaximumInflight = 65535
	c.MaximumPacketSize = maxPacketSize
	// By default the library drops retained messages after a day: a car that sleeps for a weekend
	// would lose its presence.
	const year = 365 * 24 * 60 * 60
	c.MaximumMessageExpiryInterval = year
	return c
}

// UnitsURL returns the URL for units.
func (m *MQTT) UnitsURL() string { return tcpURL(m.units.Addr()) }

// ServiceURL returns the URL for the service.
func (m *MQTT) ServiceURL() string { return tcpURL(m.service.Addr()) }

// Close disconnects every client and stops the broker. Retained messages are lost.
func (m *MQTT) Close() error {
	var err error
	m.close.Do(func() {
		err = m.server.Close()
		// The server closes only the listeners that it was given.
		m.units.Close(nil)
		m.service.Close(nil)
	})
	return err
}

// tcpURL returns the URL with which a client on this machine reaches a listener.
func tcpURL(a net.Addr) string {
	addr, ok := a.(*net.TCPAddr)
	if !ok {
		return "tcp://" + a.String()
	}
	if addr.IP.IsUnspecified() {
		return fmt.Sprintf("tcp://127.0.0.1:%d", addr.Port)
	}
	return "tcp://" + addr.String()
}
