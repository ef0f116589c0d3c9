package broker_test

import (
	"errors"
	"time"

	"motorpool/broker"
	"motorpool/telematics"
	v1 "motorpool/telematics/v1"
)

var errRefused = errors.New("the MQTT client did not take it")

// radio is one instance's way to the air.
type radio struct {
	*interleaving
	from *instance
	dice *dice
}

func (r *radio) Ready(telematics.Unit) error {
	if r.from.link.dead.Load() {
		return errDead
	}
	if r.mqtt.away() != done {
		return errRefused
	}
	return nil
}

// Publish takes its time, as a socket does, and hands over or does not.
func (r *radio) Publish(t telematics.Transmission) error {
	if r.from.link.dead.Load() {
		return errDead
	}
	claims, err := r.claimsOf(t)
	if err != nil {
		return err
	}
	r.mayBePublished(claims)
	// A tracker would execute each copy, so it has only clients that do what they say.
	if claims.Unit != r.tracker.unit && r.leaks(claims.Command) {
		r.count("anomalies")
		r.deliver(claims)
		return errRefused
	}
	if !r.mended.Load() && r.dice.chance(r.temper.slow) {
		time.Sleep(r.dice.within(0, 400*time.Millisecond))
	}
	if r.mqtt.away() != done || !r.mended.Load() && r.dice.chance(r.temper.refused) {
		r.count("publications refused")
		return errRefused
	}
	if r.from.link.dead.Load() && r.dice.chance(0.5) {
		return errDead // it died before the message left
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

// mayBePublished checks the laws of what is handed to the MQTT client.
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

// leaks reports whether the MQTT client fails and sends a command all the same.
func (w *interleaving) leaks(id telematics.CommandID) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	leaks, drawn := w.anomalies[id]
	if !drawn {
		leaks = !w.mended.Load() && w.dice.chance(w.temper.leaks)
		w.anomalies[id] = leaks
	}
	return leaks
}

// anomaly notes that a car breaks the protocol for a command: replies to it need not be true.
func (w *interleaving) anomaly(id telematics.CommandID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.anomalies[id] = true
}

// deliver carries a command to its vehicle: not at all, late, or more than once.
func (w *interleaving) deliver(claims telematics.Claims) {
	if claims.Unit == w.tracker.unit {
		w.tracker.carry(claims)
		return
	}
	car := w.carOf(claims.Unit)
	w.carry(func() { car.hear(claims) })
}

// carry does for one message what the air does: here is one that arrives.
func (w *interleaving) carry(arrive func()) {
	copies := 1
	if w.dice.chance(w.temper.repeated) {
		copies = 2
		w.count("messages repeated")
	}
	for range copies {
		if !w.mended.Load() && w.dice.chance(w.temper.lost) {
			w.count("messages lost")
			continue
		}
		took := w.dice.within(20*time.Millisecond, 800*time.Millisecond)
		if !w.mended.Load() && w.dice.chance(w.temper.held) {
			took = w.dice.within(0, 20*time.Second)
			w.count("messages held up")
		}
		w.calls.Go(func() {
			time.Sleep(took)
			arrive()
		})
	}
}

// heard gives a message of a unit to any one instance that listens.
func (w *interleaving) heard(unit telematics.Unit, give func(*broker.Broker)) {
	if i := w.anyInstance(func(i *instance) bool { return i.listens.Load() && !i.link.dead.Load() }); i != nil {
		give(i.broker)
		return
	}
	w.count("messages without a receiver")
}
