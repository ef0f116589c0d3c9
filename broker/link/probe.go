package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// errNothingShared means that the MQTT broker treats a shared subscription as an ordinary one.
var errNothingShared = errors.New("the MQTT broker granted a shared subscription ($share) and delivers nothing through it, so no answer would be " +
	"received: use an MQTT broker that has shared subscriptions for MQTT 3.1.1 clients, and let the service read and write motorpool/v1/+/presence " +
	"(see mosquitto/README.md)")

// probe blocks until a message has come through a shared subscription of this connection. A granted
// subscription proves nothing: MQTT brokers without shared ones treat its filter as a topic without
// a publisher. No other connection is in the group, so no other instance gets the probe.
func (l *Link) probe(ctx context.Context, client mqtt.Client, lost <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, l.config.ConnectTimeout)
	defer cancel()
	own := rand.Text() // a random name, so no other client joins the group
	topic := v1.ProbeTopic(own)
	filter := telematics.SharedFilter(own, topic)
	back := make(chan struct{}, 1)
	// Subscribe would add the handler under another name than that by which Unsubscribe removes it.
	subscribed := client.SubscribeMultiple(map[string]byte{filter: 1}, func(mqtt.Client, mqtt.Message) {
		select {
		case back <- struct{}{}:
		default:
		}
	})
	if err := l.await(ctx, subscribed); err != nil {
		return fmt.Errorf("subscribe to a probe: %w", err)
	}
	if err := granted(subscribed.(*mqtt.SubscribeToken)); err != nil {
		return err
	}
	defer client.Unsubscribe(filter)
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		client.Publish(topic, 1, false, []byte{}) // empty: every instance ignores it
		select {
		case <-back:
			return nil
		case <-again.C:
		case err := <-lost:
			return fmt.Errorf("lost: %w", err)
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.Canceled) {
				return ctx.Err()
			}
			return errNothingShared
		}
	}
}
