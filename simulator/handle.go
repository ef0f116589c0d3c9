package simulator

import (
	"context"

	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// These methods are safe for concurrent use. They block until the car runs, and do nothing once it
// has stopped.

// Change edits the vehicle, as a person next to it would: opens a door, drives off, switches the
// ignition. Changes are reported.
func (c *Car) Change(edit func(*Body)) {
	c.ask(func(context.Context) error {
		c.act(func(at Moment) Effects {
			edit(&c.body)
			return c.unit.Watch(at)
		})
		return nil
	})
}

// Body returns a copy of the vehicle as it is now.
func (c *Car) Body() Body {
	var body Body
	c.ask(func(context.Context) error {
		c.act(func(Moment) Effects { return Effects{} })
		body = c.body.clone()
		return nil
	})
	return body
}

// SetFaults replaces the faults of the car.
func (c *Car) SetFaults(f Faults) {
	c.ask(func(ctx context.Context) error {
		c.faults = f
		c.air.settle()
		if f.Offline {
			c.cut()
		} else {
			c.dial(ctx)
		}
		return nil
	})
}

// SetClock sets the error of the car's clock.
func (c *Car) SetClock(k Clock) {
	c.ask(func(context.Context) error {
		c.clock = k
		return nil
	})
}

// SetKeyring replaces the public keys that the unit holds: it verifies commands that it has not
// accepted yet with the new ones [CMD-1]. A connected unit publishes which keys it holds [PRE-4].
func (c *Car) SetKeyring(ring signing.Keyring) {
	c.ask(func(context.Context) error {
		c.unit.keys = ring
		if c.link != nil {
			c.present(telematics.Online)
		}
		return nil
	})
}

// Cut breaks the connection without DISCONNECT, so that the broker publishes the last will. The car
// connects again.
func (c *Car) Cut() {
	c.ask(func(ctx context.Context) error {
		if c.link != nil {
			c.cut()
			c.disconnect(ctx)
		}
		return nil
	})
}

// Restart switches the unit's power off and on. Only its memory survives: commands in progress,
// received messages and unsent answers are lost.
func (c *Car) Restart() {
	c.ask(func(ctx context.Context) error {
		c.cut()
		c.unsent = nil
		return c.boot(ctx, c.config.Boot)
	})
}

// Connected reports whether the unit is connected and has published its presence. It does not
// block.
func (c *Car) Connected() bool { return c.connected.Load() }

// Unit returns the serial of the car's unit.
func (c *Car) Unit() telematics.Unit { return c.config.Unit }

func (c *Car) ask(do func(context.Context) error) {
	done := make(chan struct{})
	asked := func(ctx context.Context) error {
		defer close(done)
		return do(ctx)
	}
	select {
	case c.asks <- asked:
		<-done
	case <-c.stopped:
	}
}
