package broker_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	v1 "motorpool/telematics/v1"
)

// reply is the reply to one caller.
type reply struct {
	by      *instance
	order   delivery.Order
	started bool // the caller did not wait for the vehicle
	at      time.Time
	took    time.Duration
	receipt delivery.Receipt
	err     *telematics.Error
}

var plannedActions = []telematics.Action{
	telematics.Lock, telematics.Unlock, telematics.EnableDriving, telematics.LockAndDisableDriving,
	telematics.ReportState, telematics.OpenTopCase,
}

// plan draws the orders and the faults of a time span.
func (w *interleaving) plan(span time.Duration) {
	for range 8 + w.dice.below(20) {
		at, order := w.dice.within(0, span), w.draw()
		twins := 1
		if w.dice.chance(0.2) {
			twins += w.dice.below(3) // further callers with the same order, at the same time
		}
		for range twins {
			order := order
			if order.Idempotency != nil && w.dice.chance(0.2) {
				// Another request with the same key, by mistake.
				order = w.under(order.Idempotency.Key, order, oneOf(w.dice, w.cars...).id, oneOf(w.dice, plannedActions...))
			}
			order.RequestID = uuid.New()
			started := w.dice.chance(0.3)
			shift := w.dice.within(0, 20*time.Millisecond)
			w.callers.Go(func() {
				time.Sleep(at + shift)
				w.ask(order, started, span)
			})
		}
	}
	for range w.dice.below(8) {
		at, disturb := w.dice.within(0, span), w.disturbance()
		w.callers.Go(func() {
			time.Sleep(at)
			disturb()
		})
	}
}

func (w *interleaving) draw() delivery.Order {
	order := delivery.Order{
		Vehicle: w.cars[w.dice.below(len(w.cars))].id, Action: oneOf(w.dice, plannedActions...), Actor: admin,
		Budget: oneOf(
			w.dice, time.Second, 2*time.Second, 5*time.Second, 10*time.Second, 30*time.Second,
			w.dice.within(time.Second, 30*time.Second),
		),
	}
	if w.dice.chance(0.6) {
		// A key belongs to one action of one vehicle, apart from a few mistakes.
		n := w.dice.below(6)
		if w.dice.chance(0.9) {
			order.Vehicle, order.Action = w.cars[n%len(w.cars)].id, plannedActions[n]
		}
		order = w.under(fmt.Sprintf("key-%d", n), order, order.Vehicle, order.Action)
	}
	return order
}

// under returns an order with a key, for an action of a vehicle.
func (w *interleaving) under(key string, order delivery.Order, vehicle telematics.VehicleID, action telematics.Action) delivery.Order {
	order.Vehicle, order.Action = vehicle, action
	order.Idempotency = &telematics.IdempotencyKey{
		Subject: admin.Subject, Key: key, Fingerprint: sha256.Sum256(fmt.Append(nil, vehicle, action)),
	}
	return order
}

// ask is a caller, who repeats an order with a key where the error says that it is retryable.
func (w *interleaving) ask(order delivery.Order, started bool, span time.Duration) {
	for range 3 {
		err := w.askOnce(order, started)
		if err == nil || !err.Retryable || order.Idempotency == nil || time.Since(w.start) > span {
			return
		}
		time.Sleep(w.dice.within(100*time.Millisecond, 6*time.Second))
		order.RequestID = uuid.New()
	}
}

// errNoInstance is the error of a caller that finds no instance, or whose instance dies.
var errNoInstance = &telematics.Error{Code: telematics.Internal, Retryable: true}

func (w *interleaving) askOnce(order delivery.Order, started bool) *telematics.Error {
	i := w.engage()
	if i == nil {
		return errNoInstance
	}
	defer i.sends.Done()
	w.count("orders")
	at, do := time.Now(), i.broker.Send
	if started {
		do = i.broker.Start
	}
	receipt, err := do(w.Context(), &order)
	var refusal *telematics.Error
	if err != nil && !errors.As(err, &refusal) {
		w.violated("errors have one shape", "%T: %v", err, err)
	}
	if i.link.dead.Load() {
		w.count("callers whose instance died")
		return errNoInstance
	}
	w.note(
		"%s replies to %v (%s of vehicle %d, key %v): %v %s, %v", i.name, order.RequestID, order.Action, order.Vehicle,
		order.Idempotency != nil, commandOf(receipt).ID, commandOf(receipt).State, err,
	)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.replies = append(w.replies, reply{i, order, started, at, time.Since(at), receipt, refusal})
	return refusal
}

// disturbance draws one fault.
func (w *interleaving) disturbance() func() {
	lasts := w.dice.within(time.Second, 15*time.Second)
	how := oneOf(w.dice, refused, hung)
	unavailable := func(s *server, name string) func() {
		return func() {
			if w.mended.Load() {
				return
			}
			w.note("%s is unavailable for %v: %s", name, lasts, callFaults[how])
			w.count(name + " unavailable")
			w.mark(s, time.Now().Add(lasts))
			s.setFault(lasts, how)
		}
	}
	end := func(crash bool) func() {
		return func() {
			if i := w.anyInstance((*instance).up); i != nil {
				if crash {
					w.count("crashes")
					i.crash()
				} else {
					w.count("orderly stops")
					i.stop()
				}
				time.Sleep(lasts)
				if !w.mended.Load() {
					w.launch()
				}
			}
		}
	}
	agency := telematics.AgencyID(w.dice.below(3))
	halt := func() {
		w.note("agency %d is halted for %v", agency, lasts)
		w.count("halts")
		w.halt(agency)
		time.Sleep(lasts)
		w.resume()
	}
	cut := oneOf(w.dice, refused, hung, slowAnswer)
	soon := w.dice.within(0, 2*time.Second)
	m := w.cars[w.dice.below(len(w.cars))]
	return oneOf(w.dice,
		unavailable(&w.postgres, "Postgres"), unavailable(&w.redis, "Redis"), unavailable(&w.mqtt, "MQTT"),
		func() { w.note("Redis is emptied"); w.count("Redis emptied"); w.memory.Pending.Flush() },
		end(true), end(true), end(false),
		func() { w.count("cars restarted"); m.restart(lasts / 4) },
		halt,
		func() { // one instance cannot read the halts in time
			if i := w.anyInstance((*instance).up); i != nil {
				w.note("%s is cut off from Postgres: %s", i.name, callFaults[cut])
				w.count("one instance without Postgres")
				w.mark(&w.postgres, time.Now().Add(lasts+soon))
				i.link.own.setFault(lasts+soon, cut)
				time.Sleep(soon)
				halt()
			}
		},
		func() { w.answerForOthers(m) },
		m.contradict,
		func() { w.ledger.sell(m.id) },
	)
}

// answerForOthers makes a car answer the other cars' commands [ACK-4].
func (w *interleaving) answerForOthers(m *motorcar) {
	for _, other := range w.cars {
		other.mu.Lock()
		jobs := append([]*job(nil), other.jobs...)
		other.mu.Unlock()
		for _, j := range jobs[max(0, len(jobs)-8):] {
			if other == m {
				continue
			}
			w.count("answers for other cars")
			answer := telematics.Answer{Command: j.Command, State: oneOf(w.dice, telematics.Succeeded, telematics.Rejected), At: time.Now()}
			report := v1.EncodeReport(telematics.Report{At: time.Now(), Answers: []telematics.Answer{answer}})
			w.deliverTo(m.unit, func(b *broker.Broker) {
				b.Answer(brokertest.Said(m.unit, v1.EncodeAnswer(answer), false))
				b.Report(brokertest.Said(m.unit, report, false))
			})
		}
	}
}
