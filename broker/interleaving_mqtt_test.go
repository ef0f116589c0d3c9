package broker_test

import (
	"errors"
	"time"

	"motorpool/broker"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

var errRefused = errors.New("the MQTT client did not take it")

// radio connects one instance to the MQTT broker.
type radio struct {
	*interleaving
	from *instance
	dice *dice
}

func (r *radio) Ready(telematics.Unit) error {
	if r.from.link.dead.Load() {
		return errDead
	}
	if r.mqtt.fault() != done {
		return errRefused
	}
	return nil
}

// Publish takes time, as a socket does, and either hands the message over or fails.
func (r *radio) Publish(t telematics.Transmission) error {
	if r.from.link.dead.Load() {
		return errDead
	}
	claims, err := r.claimsOf(t)
	if err != nil {
		return err
	}
	r.mayBePublished(claims)
	// A tracker would execute each copy, so its messages are not sent by a client that reports a
	// failure.
	if claims.Unit != r.tracker.unit && r.leaks(claims.Command) {
		r.count("anomalies")
		r.deliver(claims)
		return errRefused
	}
	if !r.mended.Load() && r.dice.chance(r.faultRates.slow) {
		time.Sleep(r.dice.within(0, 400*time.Millisecond))
	}
	if r.mqtt.fault() != done || !r.mended.Load() && r.dice.chance(r.faultRates.refused) {
		r.count("publications refused")
		return errRefused
	}
	if r.from.link.dead.Load() && r.dice.chance(0.5) {
		return errDead // the process died before the message was sent
	}
	r.count("publications")
	r.note("%s publishes %v", r.from.name, claims.Command)
	r.deliver(claims)
	return nil
}

func (r *radio) claimsOf(t telematics.Transmission) (telematics.Claims, error) {
	if t.Unit == r.tracker.unit {
		return r.tracker.claimsOf(t), nil
	}
	claims, err := r.ring.Verify(t.Payload)
	if err != nil {
		r.violated("nothing is published unsigned", "%v", err)
		return claims, err
	}
	if t.Topic != v1.CommandChannel.Topic(claims.Unit) {
		r.violated("nothing is published to another unit", "%v for %s on %s", claims.Command, claims.Unit, t.Topic)
	}
	return claims, nil
}

// mayBePublished checks the laws for a message that is passed to the MQTT client.
func (r *radio) mayBePublished(claims telematics.Claims) {
	now := time.Now()
	if left := claims.Expires.Sub(now); left <= 500*time.Millisecond {
		r.violated("nothing is published that could run late", "%v was published %v before its expiry", claims.Command, left)
	}
	e, written := r.ledger.find(claims.Command)
	if !written || e.Seq != claims.Seq || e.Unit != claims.Unit {
		r.violated("written before sent", "%v was published, the record has %+v", claims.Command, e.Command)
		return
	}
	if halt, since, halted := r.haltedFor(e.Agency, now); halted && now.Sub(since) > broker.HaltWithin {
		r.violated("a halt holds", "%v was published %v after the halt of agency %d", claims.Command, now.Sub(since), halt.Agency)
	}
}

// leaks reports whether the MQTT client reports a failure and still sends a command.
func (w *interleaving) leaks(id telematics.CommandID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	leaks, drawn := w.anomalies[id]
	if !drawn {
		leaks = !w.mended.Load() && w.dice.chance(w.faultRates.leaks)
		w.anomalies[id] = leaks
	}
	return leaks
}

// anomaly records that a car breaks the protocol for a command: replies for it need not be true.
func (w *interleaving) anomaly(id telematics.CommandID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.anomalies[id] = true
}

// deliver sends a command to its vehicle: not at all, late, or more than once.
func (w *interleaving) deliver(claims telematics.Claims) {
	if claims.Unit == w.tracker.unit {
		w.tracker.transmitOnce(claims)
		return
	}
	car := w.carOf(claims.Unit)
	w.transmit(func() { car.receive(claims) })
}

// transmit loses, delays or repeats one message. arrive is called for each copy that arrives.
func (w *interleaving) transmit(arrive func()) {
	copies := 1
	if w.dice.chance(w.faultRates.repeated) {
		copies = 2
		w.count("messages repeated")
	}
	for range copies {
		if !w.mended.Load() && w.dice.chance(w.faultRates.lost) {
			w.count("messages lost")
			continue
		}
		took := w.dice.within(20*time.Millisecond, 800*time.Millisecond)
		if !w.mended.Load() && w.dice.chance(w.faultRates.held) {
			took = w.dice.within(0, 20*time.Second)
			w.count("messages held up")
		}
		w.calls.Go(func() {
			time.Sleep(took)
			arrive()
		})
	}
}

// deliverTo gives a message of a unit to a random instance that listens.
func (w *interleaving) deliverTo(unit telematics.Unit, give func(*broker.Broker)) {
	if i := w.anyInstance(func(i *instance) bool { return i.listens.Load() && !i.link.dead.Load() }); i != nil {
		give(i.broker)
		return
	}
	w.count("messages without a receiver")
}
