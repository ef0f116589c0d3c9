package broker_test

import (
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"motorpool/broker"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// tracker is a vehicle whose unit speaks flag: it executes each command whenever it arrives, and
// its answers name an action, but no command. Answers arrive in order or not at all, and one may
// arrive a second time before the next, as with MQTT after a broken connection.
type tracker struct {
	*interleaving
	id   telematics.VehicleID
	unit telematics.Unit
	dice *dice

	mu   sync.Mutex
	jobs map[telematics.CommandID]*job // by command, which the unit does not know
	said chan struct{}                 // closed when the last answer has arrived
}

func newTracker(w *interleaving) *tracker {
	t := &tracker{
		interleaving: w, id: 50, unit: "tracker-50", dice: newDice(w.seed, 900), jobs: map[telematics.CommandID]*job{},
		said: make(chan struct{}),
	}
	close(t.said)
	w.memory.Put(telematics.Twin{
		Vehicle: telematics.Vehicle{
			ID: t.id, AgencyID: 1, Unit: t.unit, Protocol: flag{}.Protocol(), Status: telematics.Available,
			Actions: telematics.ControlActions,
		},
		Contact: telematics.Contact{LastSeen: time.Now()}, BestEffortUnlock: true,
	})
	return t
}

// plan draws the orders for the tracker.
func (t *tracker) plan(span time.Duration) {
	for range 4 + t.dice.below(10) {
		at, started := t.dice.within(0, span), t.dice.chance(0.3)
		order := delivery.Order{
			Vehicle: t.id, Action: oneOf(t.dice, telematics.Lock, telematics.Unlock, telematics.ReportState),
			Actor: admin, RequestID: uuid.New(),
			Budget: oneOf(t.dice, time.Second, 2*time.Second, 5*time.Second, 10*time.Second),
		}
		t.callers.Go(func() {
			time.Sleep(at)
			_ = t.askOnce(order, started)
		})
	}
}

// transmitOnce sends a command, at most once since it is sent at QoS 0.
func (t *tracker) transmitOnce(c telematics.Claims) {
	if !t.mended.Load() && t.dice.chance(t.faultRates.lost) {
		t.count("commands to a tracker lost")
		return
	}
	took := t.dice.within(20*time.Millisecond, 800*time.Millisecond)
	if !t.mended.Load() && t.dice.chance(t.faultRates.held) {
		took = t.dice.within(0, 20*time.Second)
	}
	t.calls.Go(func() {
		time.Sleep(took)
		t.execute(c)
	})
}

func (t *tracker) execute(c telematics.Claims) {
	t.mu.Lock()
	j := t.jobs[c.Command]
	if j == nil {
		j = &job{Claims: c}
		t.jobs[c.Command] = j
	}
	t.mu.Unlock()
	word, state := "done", telematics.Succeeded
	switch {
	case t.dice.chance(0.1):
		word, state = "refused", telematics.Rejected
	case t.dice.chance(0.1):
		word, state = "no", telematics.Failed
	}
	if state != telematics.Rejected {
		t.mu.Lock()
		j.starts = append(j.starts, time.Now())
		t.mu.Unlock()
		t.count("executions of a tracker")
		time.Sleep(t.dice.within(50*time.Millisecond, 3*time.Second))
	}
	t.mu.Lock()
	j.done = j.done || state == telematics.Succeeded
	j.final = &telematics.Answer{State: state}
	t.mu.Unlock()
	t.note("tracker ends %v: %s", c.Command, state)
	t.sendAnswer("answer " + word + " " + string(c.Action))
}

// sendAnswer sends an answer after the previous one has arrived.
func (t *tracker) sendAnswer(text string) {
	t.mu.Lock()
	before, arrived := t.said, make(chan struct{})
	t.said = arrived
	t.mu.Unlock()
	t.calls.Go(func() {
		defer close(arrived)
		<-before
		copies := 1
		if t.dice.chance(t.faultRates.repeated) {
			copies = 2
			t.count("answers of a tracker repeated")
		}
		for n := range copies {
			switch {
			case !t.mended.Load() && t.dice.chance(t.faultRates.lost):
				t.count("answers of a tracker lost")
				continue
			case n > 0: // after a reconnection
				time.Sleep(t.dice.within(0, 30*time.Second))
			case t.dice.chance(t.faultRates.held):
				time.Sleep(t.dice.within(0, 20*time.Second))
			default:
				time.Sleep(t.dice.within(20*time.Millisecond, 800*time.Millisecond))
			}
			t.deliverAnswer(text, false)
			if t.dice.chance(t.faultRates.repeated) { // the first instance did not acknowledge it
				wait := t.dice.within(0, time.Minute)
				t.calls.Go(func() {
					time.Sleep(wait)
					t.deliverAnswer(text, true)
				})
			}
		}
	})
}

func (t *tracker) deliverAnswer(text string, redelivered bool) {
	t.note("tracker's answer arrives: %q, redelivered: %t", text, redelivered)
	m := telematics.Message{Dialect: flag{}, Unit: t.unit, Subject: "data", Payload: []byte(text), Redelivered: redelivered}
	t.deliverTo(t.unit, func(b *broker.Broker) { b.Answer(m) })
}

// claimsOf returns the command of a message to the tracker.
func (t *tracker) claimsOf(message telematics.Transmission) telematics.Claims {
	_, text, _ := strings.Cut(string(message.Payload), " ")
	id, err := uuid.Parse(text)
	e, written := t.ledger.find(id)
	if err != nil || !written {
		t.violated("written before sent", "%q was sent to a tracker, which the record does not have", message.Payload)
	}
	if message.QoS > 0 || message.Repeated {
		t.violated(
			"a unit that executes repetitions gets none", "%v is published with QoS %d, again: %t", id, message.QoS,
			message.Repeated,
		)
	}
	return telematics.Claims{Command: id, Unit: message.Unit, Action: e.Action, Lane: e.Lane, Seq: e.Seq, Expires: e.Expires()}
}

// check compares the record with what the tracker did: no command may have another command's
// answer.
func (t *tracker) check() {
	for id, e := range t.ledger.entries {
		if e.Unit != t.unit {
			continue
		}
		j := t.jobs[id]
		if j != nil && len(j.starts) > 1 && !t.anomalies[id] {
			t.violated("a tracker gets a command at most once", "%v began %d times", id, len(j.starts))
		}
		if !e.State.IsFinal() {
			t.tallied("tracker: " + string(e.State))
			continue
		}
		t.tallied("tracker: " + string(e.State))
		if (j == nil || j.final == nil || j.final.State != e.State) && !t.anomalies[id] {
			t.violated("an answer settles only its own command", "%v is %s, the tracker has %+v", id, e.State, j)
		}
	}
}
