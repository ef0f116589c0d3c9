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
	// maxRetained is more than a unit retains: the most that is known is some 600 metrics.
	maxRetained  = 5000
	retainedRoom = 64 // capacity of their queue
)

// Displace ends the open connection of a unit, if there is one: of two connections with the same
// client id the MQTT broker keeps the newer, and a unit's client id is its serial [TOP-4]. Where
// the unit's access was removed, Displace also publishes its presence as offline and clears its
// other retained messages: Mosquitto does not publish the last will of a client that a reload
// disconnects. It needs the service's account, and blocks for ConnectTimeout at each node until one
// works. Of the config it uses only Nodes, Username, Password, TLS and ConnectTimeout.
func Displace(ctx context.Context, c Config, unit telematics.Unit, removed bool) error {
	var failures []error
	for _, node := range c.Nodes {
		err := displaceAt(ctx, node, c, unit, removed)
		if err == nil {
			return nil
		}
		failures = append(failures, err)
	}
	return errors.Join(failures...)
}

func displaceAt(ctx context.Context, node string, c Config, unit telematics.Unit, removed bool) error {
	return connected(ctx, node, c, string(unit), func(ctx context.Context, client mqtt.Client) error {
		if !removed {
			return nil
		}
		if err := clearRetained(ctx, client, unit); err != nil {
			return fmt.Errorf("what is retained of %s at %s: %w", unit, host(node), err)
		}
		return nil
	})
}

// Presence returns the protocol and the status of a unit's retained presence, both empty where
// there is none. It uses the same fields of the config as Displace, and blocks as long.
func Presence(ctx context.Context, c Config, unit telematics.Unit) (p telematics.Protocol, status telematics.PresenceStatus, err error) {
	var failures []error
	for _, node := range c.Nodes {
		err := connected(ctx, node, c, "motorpool-"+rand.Text(), func(ctx context.Context, client mqtt.Client) error {
			found, err := retainedOf(ctx, client, unit, telematics.Retaining.PresenceOf)
			if err != nil || len(found) == 0 {
				return err
			}
			p = found[0].Dialect.Protocol()
			if said, err := found[0].Dialect.DecodePresence(found[0].Message, time.Now()); err == nil {
				status = said.Status
			}
			return nil
		})
		if err == nil {
			return p, status, nil
		}
		failures = append(failures, err)
	}
	return "", "", errors.Join(failures...)
}

// connected calls use with a new connection. Connecting and use together may take ConnectTimeout.
func connected(ctx context.Context, node string, c Config, id string, use func(context.Context, mqtt.Client) error) error {
	timeout := cmp.Or(c.ConnectTimeout, 5*time.Second)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(node).SetClientID(id).SetUsername(c.Username).SetPassword(c.Password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetTLSConfig(c.TLS).
		SetConnectTimeout(timeout).SetWriteTimeout(timeout).SetCustomOpenConnectionFn(dial))
	defer client.Disconnect(0)
	if err := finished(ctx, client.Connect()); err != nil {
		return fmt.Errorf("connect to %s as %s: %w", host(node), id, err)
	}
	return use(ctx, client)
}

// retainedMessage is a retained message of a unit.
type retainedMessage struct {
	telematics.Message
	topic string
}

// clearRetained publishes the unit's last will, unless its presence is offline already, and clears
// its other retained messages.
func clearRetained(ctx context.Context, client mqtt.Client, unit telematics.Unit) error {
	found, err := retainedOf(ctx, client, unit, telematics.Retaining.Retained)
	if err != nil {
		return err
	}
	for _, m := range found {
		dialect := m.Dialect.(telematics.Retaining)
		var replaced []byte
		if m.topic == dialect.PresenceOf(unit) {
			presence, err := dialect.DecodePresence(m.Message, time.Now())
			if err != nil || presence.Status == telematics.Offline {
				continue // a presence that cannot be read, the service has not read either
			}
			replaced = dialect.LastWill(presence)
		}
		if err := finished(ctx, client.Publish(m.topic, 1, true, replaced)); err != nil {
			return err
		}
	}
	if len(found) == maxRetained {
		return fmt.Errorf("%d messages are cleared, and there may be others", maxRetained)
	}
	return nil
}

// retainedOf returns the retained messages of a unit, in any dialect, that match a filter.
func retainedOf(ctx context.Context, client mqtt.Client, unit telematics.Unit, filter func(telematics.Retaining, telematics.Unit) string) (all []retainedMessage, err error) {
	arrived := make(chan retainedMessage, retainedRoom)
	for _, d := range dialects.Spoken {
		dialect, ok := d.(telematics.Retaining)
		if !ok {
			continue
		}
		if err := finished(ctx, client.Subscribe(filter(dialect, unit), 1, func(_ mqtt.Client, m mqtt.Message) {
			_, subject, err := dialect.ParseTopic(m.Topic())
			if err != nil || !m.Retained() {
				return
			}
			select {
			case arrived <- retainedMessage{telematics.Message{Dialect: dialect, Unit: unit, Subject: subject, Payload: m.Payload(), Retained: true}, m.Topic()}:
			case <-ctx.Done():
			}
		})); err != nil {
			return nil, err
		}
	}
	for {
		select {
		case m := <-arrived:
			all = append(all, m)
			// A filter without a wildcard has one message.
			if len(all) == maxRetained || filter(m.Dialect.(telematics.Retaining), unit) == m.topic {
				return all, nil
			}
		case <-time.After(retainedWithin):
			return all, nil
		case <-ctx.Done():
			return nil, ctx.Err()
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
