package simulator

import (
	"context"
	"crypto/rand"
	"maps"
	"slices"
	"time"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// dial tries to connect, in a goroutine that ends with its attempt. The last will is registered on
// connecting, before the car sends its presence; both have the same session [PRE-1].
func (c *Car) dial(ctx context.Context) {
	if c.link != nil || c.faults.Offline {
		return
	}
	c.hangUp()
	ctx, c.hangUp = context.WithCancel(ctx)
	c.attempt++
	attempt, session := c.attempt, rand.Text()
	will := telematics.Presence{Status: telematics.Offline, Session: session}
	if gone := c.config.Profile.Gone; gone > 0 { // others cannot know when they will break
		will.At = c.clock.Read(time.Now()).Clock.Add(-gone)
	}
	login := Login{Unit: c.config.Unit, Password: c.config.Password, Will: v1.EncodePresence(will)}
	c.dialling.Go(func() {
		link, err := c.config.Radio.Dial(ctx, login, func(m Message) { c.deliver(heard{m, attempt}) })
		select {
		case c.dialled <- dialled{attempt, session, link, err}:
		case <-ctx.Done():
			if link != nil {
				link.Cut()
			}
		}
	})
}

// deliver never blocks the MQTT client: messages beyond the inbox are lost, and retransmitted.
func (c *Car) deliver(m heard) {
	select {
	case c.inbox <- m:
	default:
		c.config.Logger.Warn("command lost, inbox full", "unit", c.config.Unit)
	}
}

func (c *Car) connect(ctx context.Context, d dialled) {
	switch {
	case d.attempt != c.attempt:
		if d.link != nil {
			d.link.Cut()
		}
		return
	case d.err != nil:
		wait := c.backoff.NextBackOff()
		c.config.Logger.Warn("not connected", "unit", c.config.Unit, "again_in", wait, "err", d.err)
		c.timers.add(time.Now().Add(wait), func() { c.dial(ctx) })
		return
	case c.config.Profile.Gone > 0:
		c.config.Logger.Info("offline from now on, as its profile says", "unit", c.config.Unit)
		d.link.Cut()
		return
	}
	c.link, c.session = d.link, d.session
	c.timers.add(time.Now().Add(steadyLink), func() {
		if c.link == d.link {
			c.backoff.Reset()
		}
	})
	c.config.Logger.Debug("connected", "unit", c.config.Unit, "profile", c.config.Profile.Name)
	c.present(telematics.Online)
	c.reportAll()
	waiting := c.unsent
	c.unsent = nil
	for _, payload := range waiting {
		c.transmit(v1.AckChannel, payload)
	}
	c.connected.Store(true)
}

// present publishes the unit's presence; it needs a connection. An error is ignored: the connection
// is lost then.
func (c *Car) present(status telematics.PresenceStatus) {
	p := telematics.Presence{
		Status: status, Session: c.session, At: c.clock.Read(time.Now()).Clock,
		Firmware: c.body.Firmware, Actions: c.config.Profile.Actions,
		Keys: slices.Sorted(maps.Keys(c.unit.keys)),
	}
	if p.Keys == nil {
		p.Keys = []string{} // none, which is said
	}
	if err := c.link.Publish(v1.PresenceChannel, v1.EncodePresence(p), true); err != nil {
		c.config.Logger.Warn("presence not published", "unit", c.config.Unit, "err", err)
	}
}

// lost returns a channel that is closed when the connection is lost; nil without a connection.
func (c *Car) lost() <-chan struct{} {
	if c.link == nil {
		return nil
	}
	return c.link.Lost()
}

func (c *Car) disconnect(ctx context.Context) {
	c.forget()
	wait := c.backoff.NextBackOff()
	c.config.Logger.Debug("connection lost", "unit", c.config.Unit, "again_in", wait)
	c.timers.add(time.Now().Add(wait), func() { c.dial(ctx) })
}

// cut breaks the connection, or the attempt at one, without DISCONNECT.
func (c *Car) cut() {
	c.hangUp()
	if c.link != nil {
		c.link.Cut()
	}
	c.forget()
}

func (c *Car) forget() {
	c.attempt++
	c.link = nil
	c.connected.Store(false)
}

// sleep publishes standby, and disconnects.
func (c *Car) sleep() {
	if c.link != nil {
		c.present(telematics.Standby)
		c.link.Close()
	}
	c.hangUp()
	c.forget()
}
