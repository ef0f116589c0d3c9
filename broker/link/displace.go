package link

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// retainedWithin is how long the MQTT broker may take to deliver a retained message; a unit that
// has none costs all of it.
const retainedWithin = time.Second

// Displace ends the open connection of a unit, if there is one: of two connections with a client id
// the MQTT broker keeps the newer, and a unit's client id is its serial [TOP-4]. Where the unit's
// access was removed, its presence then becomes offline: Mosquitto does not publish the last will
// of a client that a reload disconnects. It needs the service's account, and of the config Nodes,
// of which it uses the first that works, Username, Password, TLS and ConnectTimeout alone.
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
	timeout := cmp.Or(c.ConnectTimeout, 5*time.Second)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client := mqtt.NewClient(mqtt.NewClientOptions().AddBroker(node).SetClientID(string(unit)).SetUsername(c.Username).SetPassword(c.Password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).SetTLSConfig(c.TLS).
		SetConnectTimeout(timeout).SetWriteTimeout(timeout).SetCustomOpenConnectionFn(dial))
	defer client.Disconnect(0)
	if err := finished(ctx, client.Connect()); err != nil {
		return fmt.Errorf("connect to %s as %s: %w", host(node), unit, err)
	}
	if !removed {
		return nil
	}
	if err := markOffline(ctx, client, unit); err != nil {
		return fmt.Errorf("presence of %s at %s: %w", unit, host(node), err)
	}
	return nil
}

// markOffline publishes what the unit's last will would have said, where it has not.
func markOffline(ctx context.Context, client mqtt.Client, unit telematics.Unit) error {
	topic := v1.PresenceChannel.Topic(unit)
	retained := make(chan []byte, 1)
	if err := finished(ctx, client.Subscribe(topic, 1, func(_ mqtt.Client, m mqtt.Message) {
		select {
		case retained <- m.Payload():
		default:
		}
	})); err != nil {
		return err
	}
	select {
	case payload := <-retained:
		presence, err := v1.DecodePresence(payload, time.Now())
		if err != nil || presence.Status == telematics.Offline {
			return nil // what cannot be read, the service has not read either
		}
		offline := telematics.Presence{Status: telematics.Offline, Session: presence.Session}
		return finished(ctx, client.Publish(topic, 1, true, v1.EncodePresence(offline)))
	case <-time.After(retainedWithin):
		return nil
	case <-ctx.Done():
		return ctx.Err()
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
