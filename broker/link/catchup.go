package link

import (
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"motorpool/guard"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// catchUp reads retained presence that the presence connection has missed: messages that units sent
// while no instance was connected, and those that did not fit into the queue.
//
// The subscription to presence is shared in a group of one member, which delivers no retained
// messages; those that Mosquitto 2.0 sends all the same are discarded. So an instance that starts
// while others, which have received all presence, are running stores nothing. It asks for such an
// instance, by a probe that all receive, and a complete one answers. Without an answer, it reads
// the retained presence of all units in the database, in batches: it subscribes to the topics of
// some units for a moment, a packet at a time. So the MQTT broker never has more to send than a
// packet, or a batch where it acknowledges a subscription before it sends what is retained. catchUp
// waits while the queue is full.
//
// The callback never blocks, which would keep the MQTT client from reading.
type catchUp struct {
	*Link
	client mqtt.Client
	to     func(telematics.Message) bool
	name   string // of this connection, in probes

	asked   chan string   // names of connections that ask for a complete instance
	covered chan struct{} // another instance is complete
	reads   atomic.Bool   // retained presence was subscribed to

	mu     sync.Mutex
	missed map[telematics.Unit]struct{} // units whose message did not fit; at most one per account
	some   chan struct{}                // holds one where missed is not empty
}

// Probes between instances.
const (
	askProbe  = "ask-"  // with the name of the connection that asks
	doneProbe = "done-" // likewise: another instance is complete
)

func newCatchUp(l *Link, to func(telematics.Message) bool) *catchUp {
	return &catchUp{
		Link: l, to: to, name: rand.Text(), asked: make(chan string, askQueue), covered: make(chan struct{}, 1),
		missed: map[telematics.Unit]struct{}{}, some: make(chan struct{}, 1),
	}
}

// receive passes a message to the receiver, or notes its unit where the queue is full.
func (c *catchUp) receive(m telematics.Message) {
	if _, closed := c.claims.state(); closed != nil || m.Retained && !c.reads.Load() || c.to(m) {
		return // before the link is admitted, nothing is received; what is retained is read then
	}
	c.mu.Lock()
	c.missed[m.Unit] = struct{}{}
	c.mu.Unlock()
	select {
	case c.some <- struct{}{}:
	default:
	}
}

// receiveProbe handles the name of a probe of any instance, this one included.
func (c *catchUp) receiveProbe(name string) {
	if asking, ok := strings.CutPrefix(name, askProbe); ok && asking != c.name {
		select {
		case c.asked <- asking:
		default: // the other instance repeats its probe, or reads by itself
		}
	}
	if name == doneProbe+c.name {
		select {
		case c.covered <- struct{}{}:
		default:
		}
	}
}

// run reads missed presence, and answers probes, until the context ends or a subscription fails.
func (c *catchUp) run(ctx context.Context, client mqtt.Client) error {
	c.client = client
	if c.config.Units == nil {
		return nil
	}
	if !c.isCovered(ctx) {
		if err := c.readAll(ctx); err != nil || ctx.Err() != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case asking := <-c.asked:
			c.publishProbe(doneProbe + asking)
		case <-c.some:
			c.config.Logger.Warn("presence queue full, reading what is retained")
			if err := c.readMissed(ctx); err != nil {
				return err
			}
		}
	}
}

func (c *catchUp) publishProbe(name string) {
	c.client.Publish(v1.ProbeTopic(name), 1, false, []byte{}) // empty: older instances ignore it
}

// isCovered reports whether another instance has received all presence. It blocks until one
// answers, for askTimes*askEvery at most.
func (c *catchUp) isCovered(ctx context.Context) bool {
	for range askTimes {
		c.publishProbe(askProbe + c.name)
		select {
		case <-c.covered:
			return true
		case <-time.After(askEvery):
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// readAll reads the retained presence of all units in the database.
func (c *catchUp) readAll(ctx context.Context) error {
	count, began, after := 0, time.Now(), telematics.Unit("")
	var outage guard.Outage
	for ctx.Err() == nil {
		units, err := c.unitsAfter(ctx, after)
		if outage.Note(ctx, c.config.Logger, "units not read", err); err != nil {
			guard.Pause(ctx, c.config.CatchUpAfter)
			continue
		}
		if len(units) == 0 {
			c.config.Logger.Info("retained presence read", "units", count, "took", time.Since(began))
			return nil
		}
		if err := c.read(ctx, units); err != nil {
			return err
		}
		if err := c.readMissed(ctx); err != nil {
			return err
		}
		count, after = count+len(units), units[len(units)-1]
	}
	return nil
}

func (c *catchUp) unitsAfter(ctx context.Context, after telematics.Unit) ([]telematics.Unit, error) {
	ctx, cancel := context.WithTimeout(ctx, c.config.ConnectTimeout)
	defer cancel()
	return c.config.Units(ctx, after, readBatch)
}

// readMissed reads the retained presence of units whose messages did not fit, after growing pauses,
// until none is missing.
func (c *catchUp) readMissed(ctx context.Context) error {
	for wait := c.config.CatchUpAfter; ; wait = min(time.Duration(float64(wait)*catchUpGrow), longestPause) {
		units := c.drainMissed()
		if len(units) == 0 {
			return nil
		}
		if !guard.Pause(ctx, wait) {
			return nil
		}
		if err := c.read(ctx, units); err != nil {
			return err
		}
	}
}

func (c *catchUp) drainMissed() []telematics.Unit {
	c.mu.Lock()
	defer c.mu.Unlock()
	units := slices.Collect(maps.Keys(c.missed))
	units = units[:min(len(units), readBatch)]
	for _, unit := range units {
		delete(c.missed, unit)
	}
	return units
}

// read subscribes to the retained presence of units, for a moment. The callback of the subscription
// to all presence receives it.
func (c *catchUp) read(ctx context.Context, units []telematics.Unit) error {
	var topics []string
	for _, unit := range units {
		for _, dialect := range c.config.Dialects {
			if topic := dialect.PresenceOf(unit); topic != "" {
				topics = append(topics, topic)
			}
		}
	}
	if len(topics) == 0 {
		return nil
	}
	c.reads.Store(true)
	for packet := range slices.Chunk(topics, readPacket) {
		filters := map[string]byte{}
		for _, topic := range packet {
			filters[topic] = 0
		}
		if err := c.await(ctx, c.client.SubscribeMultiple(filters, nil)); err != nil {
			return ignoreEnd(ctx, fmt.Errorf("subscribe to retained presence: %w", err))
		}
	}
	if !guard.Pause(ctx, readPause) {
		return nil
	}
	for packet := range slices.Chunk(topics, readPacket) {
		if err := c.await(ctx, c.client.Unsubscribe(packet...)); err != nil {
			return ignoreEnd(ctx, fmt.Errorf("unsubscribe from retained presence: %w", err))
		}
	}
	return nil
}

// ignoreEnd returns nil for an error that the end of the context has caused.
func ignoreEnd(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
