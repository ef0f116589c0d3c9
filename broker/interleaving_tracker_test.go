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

// tracker is a vehicle whose unit speaks flag: it executes what it hears, whenever that is, and its
// answers name an action, and no command. Its answers arrive in their order, or not at all, and
// before the next one may arrive again: so does MQTT on a connection that breaks.
type tracker struct {
	*interleaving
	id   telematics.VehicleID
	unit telematics.Unit
	dice *dice

	mu   sync.Mutex
	jobs map[telematics.CommandID]*job // by what the air knows, and the unit does not
	said chan struct{}                 // closed when its last answer has arrived
}

func newTracker(w *interleaving) *tracker {
	t := &tracker{interleaving: w, id: 50, unit: "tracker-50", dice: newDice(w.seed, 900), jobs: map[telematics.CommandID]*job{}, said: make(chan struct{})}
	close(t.said)
	w.memory.Put(telematics.Twin{
		Vehicle: telematics.Vehicle{
			ID: t.id, AgencyID: 1, Unit: t.unit, Protocol: flag{}.Protocol(), Status: telematics.Available, Actions: telematics.ControlActions,
		},
		Contact: telematics.Contact{LastSeen: time.Now()}, BestEffortUnlock: true,
	})
	return t
}

// isAsked draws what callers want of the tracker.
func (t *tracker) isAsked(span time.Duration) {
	for range 4 + t.dice.below(10) {
		at, started := t.dice.within(0, span), t.dice.chance(0.3)
		order := delivery.Order{
			Vehicle: t.id, Action: oneOf(t.dice, telematics.Lock, telematics.Unlock, telematics.ReportState), Actor: admin, RequestID: uuid.New(),
			Budget: oneOf(t.dice, time.Second, 2*time.Second, 5*time.Second, 10*time.Second),
		}
		t.callers.Go(func() {
			time.Sleep(at)
			_ = t.askOnce(order, started)
		})
	}
}

// carry brings a command, once at most: it leaves at QoS 0.
func (t *tracker) carry(c telematics.Claims) {
	if !t.mended.Load() && t.dice.chance(t.temper.lost) {
		t.count("commands to a tracker lost")
		return
	}
	took := t.dice.within(20*time.Millisecond, 800*time.Millisecond)
	if !t.mended.Load() && t.dice.chance(t.temper.held) {
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
	t.says("answer " + word + " " + string(c.Action))
}

// says sends an answer once the last one has arrived.
func (t *tracker) says(text string) {
	t.mu.Lock()
	before, arrived := t.said, make(chan struct{})
	t.said = arrived
	t.mu.Unlock()
	t.calls.Go(func() {
		defer close(arrived)
		<-before
		copies := 1
		if t.dice.chance(t.temper.repeated) {
			copies = 2
			t.count("answers of a tracker repeated")
		}
		for n := range copies {
			switch {
			case !t.mended.Load() && t.dice.chance(t.temper.lost):
				t.count("answers of a tracker lost")
				continue
			case n > 0: // it has connected again
				time.Sleep(t.dice.within(0, 30*time.Second))
			case t.dice.chance(t.temper.held):
				time.Sleep(t.dice.within(0, 20*time.Second))
			default:
				time.Sleep(t.dice.within(20*time.Millisecond, 800*time.Millisecond))
			}
			t.isHeard(text, false)
			if t.dice.chance(t.temper.repeated) { // to an instance that did not acknowledge it
				wait := t.dice.within(0, time.Minute)
				t.calls.Go(func() {
					time.Sleep(wait)
					t.isHeard(text, true)
				})
			}
		}
	})
}

func (t *tracker) isHeard(text string, again bool) {
	t.note("tracker is heard: %q, again: %t", text, again)
	m := telematics.Message{Dialect: flag{}, Unit: t.unit, Subject: "data", Payload: []byte(text), Repeated: again}
	t.heard(t.unit, func(b *broker.Broker) { b.Answer(m) })
}

// claimsOf returns what the air knows of a message to the tracker.
func (t *tracker) claimsOf(message telematics.Transmission) telematics.Claims {
	_, text, _ := strings.Cut(string(message.Payload), " ")
	id, err := uuid.Parse(text)
	e, written := t.ledger.find(id)
	if err != nil || !written {
		t.violated("written before sent", "a tracker is sent %q", message.Payload)
	}
	if message.QoS > 0 || !message.Once {
		t.violated("what executes repetitions gets none", "%v leaves with QoS %d, once: %t", id, message.QoS, message.Once)
	}
	return telematics.Claims{Command: id, Unit: message.Unit, Action: e.Action, Lane: e.Lane, Seq: e.Seq, Expires: e.Expires()}
}

// judge holds the record against what the tracker did: no answer may be credited to a command that
// did not cause it.
func (t *tracker) judge() {
	for id, e := range t.ledger.entries {
		if e.Unit != t.unit {
			continue
		}
		j := t.jobs[id]
		if j != nil && len(j.starts) > 1 && !t.anomalies[id] {
			t.violated("a tracker gets a command once", "%v began %d times", id, len(j.starts))
		}
		if !e.State.IsFinal() {
			t.tallied("tracker: " + string(e.State))
			continue
		}
		t.tallied("tracker: " + string(e.State))
		if (j == nil || j.final == nil || j.final.State != e.State) && !t.anomalies[id] {
			t.violated("no answer is to a command that did not cause it", "%v is %s, and the tracker did: %+v", id, e.State, j)
		}
	}
}
