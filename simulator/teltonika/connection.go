package teltonika

import (
	"context"
	"errors"
	"fmt"
	"time"

	"motorpool/simulator"

	paho "github.com/eclipse/paho.mqtt.golang"
)

func (u *Unit) topic(last string) string { return fmt.Sprintf("teltonika/%s/%s", u.config.Unit, last) }

// connect begins an attempt, in a goroutine that ends with it. There is no last will.
func (u *Unit) connect(ctx context.Context) {
	if u.NoNetwork() {
		return
	}
	u.attempt++
	attempt := u.attempt
	u.redial = time.Now().Add(connectTimeout + u.Scaled(u.config.Reconnect))
	options := simulator.ClientOptions(u.config.Broker, u.config.Unit, u.config.Password).
		SetCleanSession(true).SetKeepAlive(u.config.KeepAlive).
		SetConnectionLostHandler(func(paho.Client, error) {
			go u.Later(ctx, func() {
				if attempt == u.attempt {
					u.lost()
				}
			})
		})
	if u.config.TLS != nil {
		options.SetTLSConfig(u.config.TLS)
	}
	client := paho.NewClient(options)
	go func() {
		err := u.open(client, attempt)
		select {
		case u.Events <- func() { u.dialled(attempt, client, err) }:
		case <-ctx.Done():
			client.Disconnect(0)
		}
	}()
}

// open connects, and subscribes to the commands.
func (u *Unit) open(client paho.Client, attempt int) error {
	if token := client.Connect(); !token.WaitTimeout(connectTimeout) {
		return errors.New("no answer from the MQTT broker")
	} else if token.Error() != nil {
		return token.Error()
	}
	topic := u.topic("commands")
	token := client.Subscribe(topic, 1, func(_ paho.Client, m paho.Message) {
		select {
		case u.inbox <- heard{m.Payload(), attempt}:
		default: // lost
		}
	})
	if !token.WaitTimeout(connectTimeout) {
		return errors.New("no answer to the subscription")
	}
	if sub, ok := token.(*paho.SubscribeToken); ok && sub.Result()[topic] >= 0x80 {
		return errors.New("the subscription was refused")
	}
	return token.Error()
}

func (u *Unit) dialled(attempt int, client paho.Client, err error) {
	if attempt != u.attempt || err != nil {
		client.Disconnect(0)
		if attempt == u.attempt {
			u.redial = time.Now().Add(u.Scaled(u.config.Reconnect))
			u.config.Logger.Warn("not connected", "unit", u.config.Unit, "err", err)
		}
		return
	}
	u.link = client
	u.Online.Store(true)
	u.flush()
}

// lost ends the connection; the next attempt comes after a while.
func (u *Unit) lost() {
	u.hangUp()
	u.redial = time.Now().Add(u.Scaled(u.config.Reconnect))
}

func (u *Unit) hangUp() {
	u.attempt++
	if u.link != nil {
		u.link.Disconnect(0)
	}
	u.link = nil
	u.Online.Store(false)
}

// publish sends on the one topic of records and answers, and reports whether the MQTT broker has
// it.
func (u *Unit) publish(payload []byte) bool {
	if u.link == nil {
		return false
	}
	token := u.link.Publish(u.topic("data"), 1, false, payload)
	return token.WaitTimeout(publishTimeout) && token.Error() == nil
}
