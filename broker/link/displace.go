package link

import (
	"cmp"
	"context"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
)

// Displace ends the open connection of a unit, if there is one: of two connections with a client id
// the MQTT broker keeps the newer, and a unit's client id is its serial [TOP-4]. It needs the
// service's account, and only URL, Username, Password, TLS and ConnectTimeout of the config.
func Displace(ctx context.Context, c Config, unit telematics.Unit) error {
	timeout := cmp.Or(c.ConnectTimeout, 5*time.Second)
	o := mqtt.NewClientOptions().AddBroker(c.URL).SetClientID(string(unit)).SetUsername(c.Username).SetPassword(c.Password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).
		SetConnectTimeout(timeout).SetWriteTimeout(timeout).SetCustomOpenConnectionFn(dial).SetTLSConfig(c.TLS)
	client := mqtt.NewClient(o)
	token := client.Connect()
	defer client.Disconnect(0)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	select {
	case <-token.Done():
		if err := token.Error(); err != nil {
			return fmt.Errorf("connect to %s as %s: %w", c.URL, unit, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("connect to %s as %s: %w", c.URL, unit, ctx.Err())
	}
}
