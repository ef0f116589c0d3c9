package link

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// errNothingShared means that the MQTT broker treats a shared subscription as an ordinary one.
var errNothingShared = errors.New(
	"the MQTT broker granted a shared subscription ($share) and delivers nothing through it, so no answer would be " +
		"received: use an MQTT broker that has shared subscriptions for MQTT 3.1.1 clients, " +
		"and let the service read and write motorpool/v1/+/presence " +
		"(see mosquitto/README.md)",
)

// errSilent means that a connection is up and delivers nothing any more.
var errSilent = errors.New(
	"lost: no message comes through the subscriptions any more, not even our own, though the MQTT broker answers pings",
)

// proof proves that a connection's subscriptions deliver messages. A granted subscription proves
// nothing: MQTT brokers without shared ones treat its filter as a topic without a publisher.
// Neither does a connection that answers pings: the MQTT broker may have stopped to send
// messages on it.
//
// Its own messages come through a shared subscription of the same connection. No other
// connection is in the group, so no other instance gets them. The connection for presence
// receives them through the subscription to presence, too.
type proof struct {
	*Link
	client   mqtt.Client
	topic    string
	filter   string        // of the separate subscription
	back     chan struct{} // holds one where the message came
	received atomic.Int64  // messages of any kind

	seen   int64 // of received, at the latest look
	silent int   // looks in sequence at which nothing had come
}

func newProof(l *Link) *proof {
	own := rand.Text() // a random name, so no other client joins the group
	topic := v1.ProbeTopic(own)
	return &proof{Link: l, topic: topic, filter: telematics.SharedFilter(own, topic), back: make(chan struct{}, 1)}
}

// begin blocks until a message has come through a shared subscription of this connection.
func (p *proof) begin(ctx context.Context, client mqtt.Client, lost <-chan error) error {
	p.client = client
	ctx, cancel := context.WithTimeout(ctx, p.config.ConnectTimeout)
	defer cancel()
	subscribed := client.SubscribeMultiple(map[string]byte{p.filter: 1}, func(mqtt.Client, mqtt.Message) {
		_ = p.config.Guard.Do("receive probe", p.receive)
	})
	if err := p.await(ctx, subscribed); err != nil {
		return fmt.Errorf("subscribe to a probe: %w", err)
	}
	if err := granted(subscribed.(*mqtt.SubscribeToken)); err != nil {
		return err
	}
	again := time.NewTicker(probeEvery)
	defer again.Stop()
	for {
		p.send()
		select {
		case <-p.back:
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

func (p *proof) receive() {
	p.received.Add(1)
	select {
	case p.back <- struct{}{}:
	default:
	}
}

func (p *proof) send() {
	p.client.Publish(p.topic, 1, false, []byte{}) // empty: every instance ignores it
}

// again looks whether anything has come since the last look, and sends the next probe. A flood
// that the probe waits behind, or that makes the MQTT broker drop it, is no silence.
func (p *proof) again() error {
	now := p.received.Load()
	if now != p.seen {
		p.seen, p.silent = now, 0
	} else if p.silent++; p.silent >= silentLooks {
		return errSilent
	}
	p.send()
	return nil
}
