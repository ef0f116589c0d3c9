package link

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
	"motorpool/telematics/dialects"
)

const (
	// retainedWithin is how long the MQTT broker may take to deliver the next retained message; a
	// unit that has none costs all of it.
	retainedWithin = time.Second
	connectTimeout = 5 * time.Second // default of Config.ConnectTimeout, here
	retainedRoom   = 64              // capacity of their queue
	// clearWithin is how long the clearing of a unit may take: at some 10,000 messages a second,
	// for more than an MQTT broker keeps within its memory_limit.
	clearWithin = 10 * time.Minute
)

// Displace ends the open connection of a unit, if there is one: of two connections with the same
// client id the MQTT broker keeps the newer, and a unit's client id is its serial [TOP-4]. It also
// publishes the unit's presence as offline and clears its other retained messages: Mosquitto does
// not publish the last will of a client that a reload disconnects. It returns the topics of
// retained messages that the service may not clear. It needs the service's account, and blocks for
// ConnectTimeout at each node until one works, and then while messages are cleared. Of the config
// it uses only Nodes, Username, Password, TLS and ConnectTimeout. It may be repeated. It fails,
// with the errors of all nodes, where none works.
func Displace(ctx context.Context, c Config, unit telematics.Unit) (left []string, err error) {
	var failures []error
	for _, node := range c.Nodes {
		err := connected(ctx, node, c, string(unit), func(client mqtt.Client) error {
			ctx, cancel := context.WithTimeout(ctx, clearWithin)
			defer cancel()
			if left, err = clearRetained(ctx, client, unit); err != nil {
				return fmt.Errorf("what is retained of %s at %s: %w", unit, host(node), err)
			}
			return nil
		})
		if err == nil {
			return left, nil
		}
		failures = append(failures, err)
	}
	return nil, errors.Join(failures...)
}

// Presence returns the protocol and the status of a unit's retained presence, both empty where
// there is none. It uses the same fields of the config as Displace, and blocks as long. It fails as
// Displace does.
func Presence(ctx context.Context, c Config, unit telematics.Unit) (p telematics.Protocol, status telematics.PresenceStatus, err error) {
	var failures []error
	for _, node := range c.Nodes {
		err := connected(ctx, node, c, "motorpool-"+rand.Text(), func(client mqtt.Client) error {
			ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.ConnectTimeout, connectTimeout))
			defer cancel()
			err := eachRetained(ctx, client, unit, presenceOf, func(m retainedMessage) error {
				p = m.Dialect.Protocol()
				if said, err := m.Dialect.DecodePresence(m.Message, time.Now()); err == nil {
					status = said.Status
				}
				return errFound
			})
			if errors.Is(err, errFound) {
				return nil
			}
			return err
		})
		if err == nil {
			return p, status, nil
		}
		failures = append(failures, err)
	}
	return "", "", errors.Join(failures...)
}

// errFound ends the look at retained messages at the first one.
var errFound = errors.New("found")

func presenceOf(d telematics.Retaining, u telematics.Unit) []string { return []string{d.PresenceOf(u)} }

// connected calls use with a new connection. Connecting may take ConnectTimeout.
func connected(ctx context.Context, node string, c Config, id string, use func(mqtt.Client) error) error {
	timeout := cmp.Or(c.ConnectTimeout, connectTimeout)
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(node).SetClientID(id).SetUsername(c.Username).SetPassword(c.Password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetTLSConfig(c.TLS).
		SetConnectTimeout(timeout).SetWriteTimeout(timeout).SetCustomOpenConnectionFn(dial))
	defer client.Disconnect(0)
	connecting, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := finished(connecting, client.Connect()); err != nil {
		return fmt.Errorf("connect to %s as %s: %w", host(node), id, err)
	}
	return use(client)
}

// retainedMessage is a retained message of a unit.
type retainedMessage struct {
	telematics.Message
	topic string
}

// clearRetained publishes the unit's last will, unless its presence is offline already, and clears
// its other retained messages. It returns the topics of those that stay: the service may not write
// there. It is idempotent, and bounded by what is retained: the unit has no access any more.
func clearRetained(ctx context.Context, client mqtt.Client, unit telematics.Unit) (left []string, err error) {
	cleared := map[string]bool{}
	for { // the MQTT broker delivers some 10,000 retained messages to a subscriber at a time
		var isNew bool
		left = nil
		err := eachRetained(ctx, client, unit, telematics.Retaining.Retained, func(m retainedMessage) error {
			dialect := m.Dialect.(telematics.Retaining)
			var replaced []byte
			if m.topic == dialect.PresenceOf(unit) {
				presence, err := dialect.DecodePresence(m.Message, time.Now())
				if err != nil || presence.Status == telematics.Offline {
					return nil // a presence that cannot be read, the service has not read either
				}
				replaced = dialect.LastWill(presence)
			}
			if cleared[m.topic] {
				left = append(left, m.topic)
				return nil
			}
			cleared[m.topic], isNew = true, true
			// At QoS 0: the reply to another one would be read behind all that is retained.
			return finished(ctx, client.Publish(m.topic, 0, true, replaced))
		})
		if err != nil || !isNew {
			return left, err
		}
	}
}

// eachRetained calls a function with each retained message of a unit, in any dialect, that matches
// the filters. It returns when the MQTT broker has delivered none for retainedWithin.
func eachRetained(
	ctx context.Context, client mqtt.Client, unit telematics.Unit,
	filters func(telematics.Retaining, telematics.Unit) []string, call func(retainedMessage) error,
) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends handlers that still wait for room
	arrived := make(chan retainedMessage, retainedRoom)
	subscribed := make(chan error, 1)
	// Concurrently: the reply to a subscription comes after the messages of the one before.
	go func() {
		for _, d := range dialects.Spoken {
			dialect, ok := d.(telematics.Retaining)
			if !ok {
				continue
			}
			for _, filter := range filters(dialect, unit) {
				err := finished(ctx, client.Subscribe(filter, 0, func(_ mqtt.Client, m mqtt.Message) {
					if !m.Retained() {
						return
					}
					_, subject, _ := dialect.ParseTopic(m.Topic())
					select {
					case arrived <- retainedMessage{
						telematics.Message{Dialect: dialect, Unit: unit, Subject: subject, Payload: m.Payload(), Retained: true}, m.Topic(),
					}:
					case <-ctx.Done():
					}
				}))
				if err != nil {
					subscribed <- err
					return
				}
			}
		}
		subscribed <- nil
	}()
	for done := false; ; {
		var idle <-chan time.Time
		if done {
			idle = time.After(retainedWithin)
		}
		select {
		case m := <-arrived:
			if err := call(m); err != nil {
				return err
			}
		case err := <-subscribed:
			if err != nil {
				return err
			}
			done = true
		case <-idle:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func finished(ctx context.Context, token mqtt.Token) error {
	select {
	case <-token.Done():
		return token.Error()
	case <-ctx.Done():
		return ctx.Err()
	}
}
