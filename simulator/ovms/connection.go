package ovms

import (
	"context"
	"errors"

	"motorpool/simulator"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"
)

// prefix begins every topic of the module (Connect).
func (m *Module) prefix() string {
	return "ovms/" + string(m.config.Unit) + "/" + string(m.config.Unit) + "/"
}

// connect begins an attempt, in a goroutine that ends with it.
func (m *Module) connect(ctx context.Context) {
	m.attempt++
	attempt := m.attempt
	line := &simulator.Line{}
	client := paho.NewClient(simulator.ClientOptions(m.config.Broker, m.config.Unit, m.config.Password).
		SetCleanSession(false). // the firmware sets no such flag
		SetKeepAlive(keepAlive).
		SetWill(m.prefix()+"metric/s/v3/connected", "no", 0, true).
		SetDefaultPublishHandler(func(_ paho.Client, p paho.Message) {
			select {
			case m.inbox <- message{p.Topic(), string(p.Payload()), attempt}:
			default: // lost
			}
		}).
		SetConnectionLostHandler(func(paho.Client, error) { m.Later(ctx, func() { m.lostBy(attempt) }) }).
		SetCustomOpenConnectionFn(line.Opener(ctx, m.config.TLS)))
	go func() {
		token, err := client.Connect(), errors.New("no answer from the broker")
		if token.WaitTimeout(connectTimeout) {
			err = token.Error()
		}
		select {
		case m.Events <- func() { m.dialled(attempt, client, line.Cut, err) }:
		case <-ctx.Done():
			line.Cut()
		}
	}()
}

// dialled handles the result of an attempt (MG_EV_MQTT_CONNACK). After a refused login, firmware
// later than 3.3.006 never tries again.
func (m *Module) dialled(attempt int, client paho.Client, cut func(), err error) {
	switch {
	case attempt != m.attempt:
		cut()
		return
	case err != nil:
		m.retry = retryRefused
		if refused(err) {
			m.retry = -1
			m.suspended.Store(true)
		}
		m.config.Logger.Warn("not connected", "unit", m.config.Unit, "again_in_s", m.retry, "err", err)
		return
	}
	m.link, m.cut = client, cut
	m.mustSubscribe = true
	m.Online.Store(true)
	m.greet()
	m.signal("server.v3.connected")
}

// subscribe ignores a denied subscription, as the firmware does.
func (m *Module) subscribe() {
	filters := map[string]byte{}
	for _, filter := range []string{"client/+/active", "client/+/command/+", "client/+/request/metric", "client/+/request/config"} {
		filters[m.prefix()+filter] = 1
	}
	m.link.SubscribeMultiple(filters, nil)
}

func refused(err error) bool {
	return errors.Is(err, packets.ErrorRefusedNotAuthorised) || errors.Is(err, packets.ErrorRefusedBadUsernameOrPassword) ||
		errors.Is(err, packets.ErrorRefusedIDRejected)
}

func (m *Module) lostBy(attempt int) {
	if attempt == m.attempt && m.link != nil {
		m.lost(retryLost)
	}
}

func (m *Module) lost(retry int) {
	m.hangUp()
	m.retry = retry
}

// hangUp ends the connection without DISCONNECT.
func (m *Module) hangUp() {
	m.attempt++
	m.cut()
	m.link, m.cut = nil, func() {}
	m.Online.Store(false)
}

// publish does not wait: messages that the connection does not accept are lost, as in the firmware.
func (m *Module) publish(last string, qos byte, retained bool, payload string) {
	if m.link != nil {
		m.link.Publish(m.prefix()+last, qos, retained, payload)
	}
}
