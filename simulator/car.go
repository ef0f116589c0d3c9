// Package simulator simulates cars whose telematics units speak protocol v1 in full, with radios
// and bodies that can have the faults of real ones. It replaces no part of the service, which
// cannot distinguish these cars from real ones.
//
//	              Car: one goroutine owns all of it
//	┌──────────────────────────────────────────────────────────────┐
//	│  Radio ◄──► air ◄──────────► Unit ──────► Body               │
//	│  MQTT       latency, loss,   checks,      doors, immobilizer,│
//	│             order            lanes, Log   motion, energy     │
//	└───────────────────────────────│──────────────────────────────┘
//	                            Recorder (what was executed, and when)
//
// Unit, air and Body are pure: their methods take an instant and a message, and return the effects.
// Car owns the timers and the connection. Fleet runs any number of cars; Demo returns the profiles
// of ten cars, each of which shows one outcome.
//
// Faults make a car violate the protocol, and Clock makes its time wrong. Apart from that, it obeys
// the protocol exactly: lines that fulfil a clause cite it, as [CMD-5].
package simulator

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v4"

	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

// Car is a vehicle with its unit and its radio. Run runs it; the methods with which a test changes
// it meanwhile are in handle.go.
type Car struct {
	config    Config
	connected atomic.Bool
	asks      chan func(context.Context) error // from other goroutines; Run calls them
	inbox     chan heard                       // from the connection
	dialled   chan dialled
	stopped   chan struct{} // closed when Run returns
	dialling  sync.WaitGroup

	// The goroutine of Run owns everything below.
	unit    *Unit
	body    Body
	faults  Faults
	clock   Clock
	rng     *rand.Rand
	air     *air
	timers  *timers
	backoff *backoff.ExponentialBackOff
	lived   time.Time // the body has been advanced up to then
	attempt int       // number of the dial attempt; results of older ones are ignored
	hangUp  context.CancelFunc
	link    Connection // nil: none
	session string
	unsent  [][]byte // answers that wait for a connection
}

// heard is a received message, and the attempt whose connection received it.
type heard struct {
	Message
	attempt int
}

type dialled struct {
	attempt int
	session string
	link    Connection
	err     error
}

const (
	inboxSize    = 64
	maxUnsent    = 64
	firstRedial  = 500 * time.Millisecond
	maxRedial    = 30 * time.Second
	steadyLink   = 10 * time.Second // a connection that lasted this long is no failed attempt
	redialSpread = 0.5
)

// NewCar assembles a car; it does nothing before Run.
func NewCar(config Config) *Car {
	config = config.withDefaults()
	c := &Car{
		config: config, asks: make(chan func(context.Context) error), inbox: make(chan heard, inboxSize),
		dialled: make(chan dialled), stopped: make(chan struct{}), body: config.Profile.Body.clone(),
		faults: config.Profile.Faults, clock: config.Profile.Clock, rng: Random(config.Seed, config.Unit),
		hangUp: func() {},
	}
	c.air = newAir(config.Profile.Latency, &c.faults, c.rng)
	c.unit = &Unit{
		serial: config.Unit, keys: config.Keyring, actions: config.Profile.Actions, memory: config.Memory,
		effort: config.Effort, body: &c.body, faults: &c.faults, rng: c.rng,
	}
	return c
}

// Run runs the car until ctx is cancelled, then publishes standby and disconnects: otherwise its
// retained presence would stay online after a proper DISCONNECT. It returns an error only if the
// unit's memory cannot be read. Call it once.
func (c *Car) Run(ctx context.Context) error {
	defer close(c.stopped)
	defer c.dialling.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c.timers = newTimers()
	c.backoff = backoff.NewExponentialBackOff(backoff.WithInitialInterval(firstRedial), backoff.WithMaxInterval(maxRedial),
		backoff.WithRandomizationFactor(redialSpread), backoff.WithMaxElapsedTime(0))
	c.lived = time.Now()
	if err := c.boot(ctx, 0); err != nil {
		return err
	}
	defer c.sleep()
	for {
		select {
		case <-ctx.Done():
			return nil
		case do := <-c.asks:
			if err := do(ctx); err != nil {
				return err
			}
		case m := <-c.inbox:
			c.receive(m)
		case d := <-c.dialled:
			c.connect(ctx, d)
		case <-c.lost():
			c.disconnect(ctx)
		case <-c.timers.C:
			c.timers.run()
		}
	}
}

// boot starts the unit from its memory, and connects it after a while.
func (c *Car) boot(ctx context.Context, after time.Duration) error {
	c.timers.clear()
	now := time.Now()
	var failure error
	c.act(func(at Moment) Effects {
		effects, err := c.unit.Boot(at)
		failure = err
		return effects
	})
	if failure != nil {
		return fmt.Errorf("start unit %s: %w", c.config.Unit, failure)
	}
	c.timers.add(now.Add(after), func() { c.dial(ctx) })
	c.timers.add(now.Add(after+uniform(c.rng, 0, c.config.Interval)), c.tick)
	return nil
}

// act advances the car to now, calls do, and carries out the effects.
func (c *Car) act(do func(Moment) Effects) {
	now := time.Now()
	c.body.Advance(now.Sub(c.lived), c.rng)
	c.lived = now
	at := c.clock.Read(now)
	before := c.body.Report(at.Clock)
	effects := do(at)
	c.config.Recorder.Record(effects.Events...)
	for _, a := range effects.Answers {
		c.answer(a)
	}
	if fresh := changed(before, c.body.Report(at.Clock)); len(fresh.Values) > 0 {
		c.report(fresh)
	}
	for _, w := range effects.Waits {
		c.timers.add(now.Add(w.For), func() {
			c.act(func(at Moment) Effects { return c.unit.Continue(at, w.Lane) })
		})
	}
	if effects.Err != nil {
		c.config.Logger.Error("unit memory not written", "unit", c.config.Unit, "err", effects.Err)
	}
}

func (c *Car) receive(m heard) {
	if m.attempt != c.attempt {
		return
	}
	at, arrives := c.air.down(time.Now(), m.Payload)
	if !arrives {
		return
	}
	if apart, struck := c.air.apart(); struck {
		if copy, ok := damaged(m.Payload); ok {
			c.receiveDamaged(at, copy, m.Retained)
			at = at.Add(apart)
		}
	}
	c.timers.add(at, func() {
		c.act(func(at Moment) Effects { return c.unit.Receive(at, m.Payload, m.Retained) })
	})
}

func (c *Car) receiveDamaged(at time.Time, copy []byte, retained bool) {
	id, _ := claimedID(copy)
	c.timers.add(at, func() {
		c.act(func(at Moment) Effects {
			c.config.Recorder.Record(Event{Kind: CommandDamaged, Unit: c.config.Unit, Command: id, Clock: at.Clock, True: at.True})
			return c.unit.Receive(at, copy, retained)
		})
	})
}

func (c *Car) answer(a telematics.Answer) {
	payload := v1.EncodeAnswer(a)
	for _, at := range c.air.upAnswer(time.Now()) {
		c.timers.add(at, func() { c.transmit(v1.AckChannel, payload) })
	}
}

func (c *Car) report(r telematics.Report) {
	if c.faults.Late == 0 { // held back here, too
		r.Answers = c.unit.log.answers()
	}
	payload := v1.EncodeReport(r)
	c.timers.add(c.air.up(time.Now()), func() { c.transmit(v1.TelemetryChannel, payload) })
}

// tick sends the whole report that is due.
func (c *Car) tick() {
	c.reportAll()
	c.timers.add(time.Now().Add(c.config.Interval), c.tick)
}

func (c *Car) reportAll() {
	if c.link == nil {
		return
	}
	c.act(func(at Moment) Effects {
		c.report(c.body.Report(at.Clock))
		return Effects{}
	})
}

// transmit gives a message to the connection. Without one, a report is lost, since the next one is
// newer; an answer waits.
func (c *Car) transmit(channel v1.Channel, payload []byte) {
	if c.link != nil && c.link.Publish(channel, payload, false) == nil {
		return
	}
	if channel == v1.AckChannel {
		c.unsent = append(c.unsent, payload)
		c.unsent = c.unsent[max(0, len(c.unsent)-maxUnsent):]
	}
}
