package simulator

import (
	"encoding/base64"
	"encoding/json"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// Unit is the application in a telematics unit: protocol v1 without time, network and threads. Its
// methods take a message or event with its moment, and return the effects, which the car carries
// out. Not safe for concurrent use.
type Unit struct {
	serial  telematics.Unit
	keys    signing.Keyring
	actions []telematics.Action
	body    *Body
	faults  *Faults
	rng     *rand.Rand
	effort  time.Duration // of one movement
	memory  Memory

	log   Log
	floor floor
	lanes map[telematics.Lane][]*job // the first is at work, the others wait for it [CMD-8]
}

// Effects is what follows from something that happened to a unit, in order.
type Effects struct {
	Answers []telematics.Answer // to publish
	Waits   []Wait
	Events  []Event
	Err     error // the memory could not be written
}

// Wait is a request to call Continue after a while.
type Wait struct {
	Lane telematics.Lane
	For  time.Duration
}

// turn is one call of a unit: the unit, the moment of the call, and the effects so far.
type turn struct {
	*Unit
	at Moment
	Effects
}

// Boot starts the unit. It answers unfinished commands of its memory as interrupted [CMD-5].
func (u *Unit) Boot(at Moment) (Effects, error) {
	log, err := u.memory.Load()
	if err != nil {
		return Effects{}, err
	}
	u.log, u.lanes = log, map[telematics.Lane][]*job{}
	u.floor = floor{} // not kept over a restart: a wrong one must not outlive it [CMD-9]
	if u.log.Armed {
		u.body.Immobilizer = Armed
	}
	t := turn{Unit: u, at: at}
	for _, r := range u.log.Commands {
		if r.Answer == nil {
			claims := telematics.Claims{Command: r.Command, Action: r.Action, Lane: r.Lane, Seq: r.Seq}
			report := u.body.Report(at.Clock)
			t.settle(claims, telematics.Answer{State: telematics.Failed, Reason: telematics.Interrupted, Report: &report})
		}
	}
	t.watch()
	return t.Effects, nil
}

// Watch makes the unit check its car after a change of the car's state.
func (u *Unit) Watch(at Moment) Effects {
	t := turn{Unit: u, at: at}
	t.watch()
	return t.Effects
}

// watch lets an armed immobilizer act once the ignition is off [CMD-7].
func (t *turn) watch() {
	t.body.settle()
	if armed := t.body.Immobilizer == Armed; armed != t.log.Armed {
		t.log.Armed = armed
		t.save()
	}
}

// Receive handles a message from the unit's command topic.
func (u *Unit) Receive(at Moment, message []byte, retained bool) Effects {
	t := turn{Unit: u, at: at}
	if !retained { // [CMD-4] first: a retained one is a leftover, whatever key signed it
		t.receive(message)
	}
	return t.Effects
}

func (t *turn) receive(message []byte) {
	claims, err := t.keys.Verify(message)
	if err != nil {
		t.forged(message)
		return
	}
	t.note(CommandReceived, claims, telematics.Answer{})
	if t.faults.Silent {
		return
	}
	if claims.Unit != t.serial { // not ours to remember: the same answer comes each time
		t.say(claims, telematics.Answer{State: telematics.Rejected, Reason: telematics.WrongAudience})
		return
	}
	if known := t.log.find(claims.Command); known != nil {
		t.learn(claims)
		t.repeat(claims, known)
		return
	}
	reason, detail := t.objection(claims)
	t.learn(claims)
	if reason != "" {
		// Remembered too: a command that was refused once must not be executed when it comes again.
		t.log.add(Remembered{Command: claims.Command, Action: claims.Action, Lane: claims.Lane, Seq: claims.Seq})
		t.reject(claims, reason, detail)
		return
	}
	t.accept(claims)
}

// forged answers a message that no known key signed, if it names a command. A forged copy of a
// command that the unit has seen gets no answer: it must not contradict the true one.
func (t *turn) forged(message []byte) {
	id, ok := claimedID(message)
	if !ok || t.faults.Silent || t.log.find(id) != nil {
		return
	}
	t.say(telematics.Claims{Command: id}, telematics.Answer{State: telematics.Rejected, Reason: telematics.BadSignature})
}

func claimedID(message []byte) (telematics.CommandID, bool) {
	parts := strings.Split(string(message), ".")
	if len(parts) != 3 || len(message) > telematics.MaxMessage {
		return telematics.NoCommand, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return telematics.NoCommand, false
	}
	var claims struct {
		ID string `json:"jti"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil {
		return telematics.NoCommand, false
	}
	id, err := uuid.Parse(claims.ID)
	return id, err == nil
}

// repeat sends again the last answer to a command that the unit has seen [CMD-5].
func (t *turn) repeat(claims telematics.Claims, known *Remembered) {
	if known.Answer == nil {
		t.say(claims, telematics.Answer{State: telematics.Received})
		return
	}
	t.note(CommandAnswered, claims, *known.Answer)
	t.Answers = append(t.Answers, *known.Answer)
}

// accept stores the command before anything moves [CMD-5], and adds it to its lane.
func (t *turn) accept(claims telematics.Claims) {
	t.log.add(Remembered{Command: claims.Command, Action: claims.Action, Lane: claims.Lane, Seq: claims.Seq})
	t.log.Seq[claims.Lane] = claims.Seq
	if !t.save() {
		t.settle(claims, telematics.Answer{State: telematics.Failed, Detail: "memory_fault"})
		return
	}
	t.say(claims, telematics.Answer{State: telematics.Received})
	t.lanes[claims.Lane] = append(t.lanes[claims.Lane], &job{claims: claims, steps: steps(claims.Action, claims.Attention, t.effort)})
	if len(t.lanes[claims.Lane]) == 1 {
		t.begin(claims.Lane)
	}
}

func (t *turn) reject(claims telematics.Claims, reason, detail string) {
	a := telematics.Answer{State: telematics.Rejected, Reason: reason, Detail: detail}
	if reason == telematics.StateConflict {
		report := selectFields(t.body.Report(t.at.Clock), evidence(detail))
		a.Report = &report
	}
	t.settle(claims, a)
}

// settle stores the final answer, then sends it.
func (t *turn) settle(claims telematics.Claims, a telematics.Answer) {
	a = t.dated(claims, a)
	if known := t.log.find(claims.Command); known != nil {
		known.Answer = &a
	}
	t.save()
	t.say(claims, a)
}

func (t *turn) say(claims telematics.Claims, a telematics.Answer) {
	a = t.dated(claims, a)
	t.note(CommandAnswered, claims, a)
	t.Answers = append(t.Answers, a)
}

func (t *turn) dated(claims telematics.Claims, a telematics.Answer) telematics.Answer {
	a.Command, a.At, a.Trace = claims.Command, t.at.Clock.Truncate(time.Millisecond), claims.Trace
	return a
}

func (t *turn) save() bool {
	if err := t.memory.Save(t.log); err != nil {
		t.Err = err
		return false
	}
	return true
}

func (t *turn) note(kind Kind, c telematics.Claims, a telematics.Answer) {
	t.Events = append(t.Events, Event{
		Kind: kind, Unit: t.serial, Command: c.Command, Action: c.Action, Lane: c.Lane, Seq: c.Seq, Expires: c.Expires,
		Status: a.State, Reason: a.Reason, Detail: a.Detail, Clock: t.at.Clock, True: t.at.True,
	})
}
