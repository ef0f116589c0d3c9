package broker

import (
	"context"
	"runtime/trace"
	"time"

	"motorpool/telematics"
)

// heard is a message as it came from the MQTT client.
type heard struct {
	telematics.Message
	at time.Time
}

// stray is an answer that nobody seems to have asked for.
type stray struct {
	unit   telematics.Unit
	answer telematics.Answer
	at     time.Time
}

// Answer takes a message from a unit's ack topic. It hands over and returns [LAW-8].
func (b *Broker) Answer(m telematics.Message) {
	b.Counts.add(answersTaken)
	if m.Retained {
		b.Counts.add(answersRetained)
		return
	}
	if len(m.Payload) > telematics.MaxMessage { // before it takes room in the queue
		b.Counts.add(answersTooLarge)
		return
	}
	select {
	case b.answers <- heard{Message: m, at: time.Now().UTC()}:
	default:
		// The command is published again, and the unit repeats its answer [CMD-5].
		b.Counts.add(answersDropped)
	}
}

func (b *Broker) handleAnswers(ctx context.Context) error {
	handling := context.WithoutCancel(ctx) // an answer in hand is settled; each step has its own time limit
	for {
		select {
		case <-ctx.Done():
			b.drainAnswers(handling)
			return ctx.Err()
		case h := <-b.answers:
			b.handleAnswer(handling, h)
		}
	}
}

// drainAnswers handles what was acknowledged to the MQTT broker before the end: nobody
// else will see it again.
func (b *Broker) drainAnswers(ctx context.Context) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	for {
		select {
		case h := <-b.answers:
			b.handleAnswer(ctx, h)
		default:
			return
		}
	}
}

func (b *Broker) handleAnswer(ctx context.Context, h heard) {
	decoding := trace.StartRegion(ctx, telematics.StepDecode)
	answer, dropped, err := h.Dialect.DecodeAnswer(h.Message, h.at)
	decoding.End()
	if err != nil {
		b.Counts.add(answersMalformed)
		b.Logger.Debug("answer not readable", "unit", h.Unit, "err", err)
		return
	}
	b.Counts.addDropped(dropped)
	// Whoever waits may read the state next, so the report is in it before the
	// caller is told.
	sign := telematics.Observation{Unit: h.Unit, Protocol: h.Dialect.Protocol(), At: h.at, Report: answer.Report, Awaited: answer.Report != nil}
	w := b.waiters.find(answer.Command)
	if w != nil && w.command.Unit == h.Unit {
		sign.Asked = w.command.Vehicle
	}
	var reported *awaited
	if sign.Awaited {
		reported = b.report(sign)
	} else if !b.contact.add(sign) {
		b.Counts.add(presenceDropped)
	}
	switch {
	case w != nil:
		b.settle(ctx, h.Unit, answer, h.at, w, reported)
		return
	case b.asked(ctx, h.Unit, answer.Command):
		b.settle(ctx, h.Unit, answer, h.at, nil, reported)
		return
	case b.done.contains(h.Unit, answer.Command): // the unit was asked again, and says again what is written down
		b.Counts.add(answersIdle)
	default:
		select {
		case b.strays <- stray{unit: h.Unit, answer: answer, at: h.at}:
		default:
			b.Counts.add(answersDropped)
		}
	}
	reported.await(ctx)
}

// lookupPatience is how long the pending table may take to say whether an answer was
// asked for: while it hangs, answers must not pile up behind the question.
const lookupPatience = 250 * time.Millisecond

// asked reports whether somebody waits for the answer at another instance. Absence from the pending
// table means nothing, so a false only sends the answer the slower way.
func (b *Broker) asked(ctx context.Context, unit telematics.Unit, id telematics.CommandID) bool {
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	_, found, err := b.Pending.Lookup(ctx, unit, id)
	return found || err != nil
}

// handleStrays settles what strays came, until the context ends, and then those that
// are left, for no longer than one step may take.
func (b *Broker) handleStrays(ctx context.Context, strays <-chan stray, handle func(context.Context, stray)) {
	handling := context.WithoutCancel(ctx)
	for {
		select {
		case s := <-strays:
			handle(handling, s)
		case <-ctx.Done():
			draining, cancel := b.step(handling)
			defer cancel()
			for {
				select {
				case s := <-strays:
					handle(draining, s)
				default:
					return
				}
			}
		}
	}
}

func (b *Broker) settleStray(ctx context.Context, s stray) {
	b.settle(ctx, s.unit, s.answer, s.at, b.waiters.find(s.answer.Command), nil) // its report was written before, or is on its way
}

// settle lets the record decide what the answer changes, and wakes whoever waits: here, or, nil, elsewhere or nobody.
func (b *Broker) settle(ctx context.Context, unit telematics.Unit, a telematics.Answer, at time.Time, w *waiter, reported *awaited) {
	finding := telematics.Settlement{
		Command: a.Command, Unit: unit, State: a.State, // [ACK-4]
		Reason: a.Reason, Detail: a.Detail, Reported: a.Report, At: at,
	}
	if w != nil && unit == w.command.Unit {
		if took, first := w.firstWord(); first {
			b.usual.heard(took)
		}
	}
	if w != nil && a.State == telematics.Received && a.Report == nil && w.progress().Attempts > 0 {
		b.receive(unit, w, at)
		return
	}
	if w != nil {
		if !a.State.IsOpen() && unit == w.command.Unit {
			w.answers()
		}
		finding.Progress, finding.Known = w.progress(), w.command
	}
	stepping, cancel := b.step(ctx)
	settling := trace.StartRegion(stepping, telematics.StepSettle)
	c, ok, err := b.Commands.Settle(stepping, finding)
	settling.End()
	cancel()
	reported.await(ctx)
	switch {
	case err != nil:
		b.Counts.add(answersLost)
		b.Logger.Warn("answer not written down; the unit will repeat it", "unit", unit, "command", a.Command, "state", a.State, "err", err)
	case !ok:
		b.Counts.add(answersIdle)
		b.ended(unit, a)
	default:
		b.ended(unit, a)
		b.countSettled(c)
		b.wake(ctx, c)
	}
}

// receive lets the caller know that the unit has its command. The record is told a moment later, or with what comes of it.
func (b *Broker) receive(unit telematics.Unit, w *waiter, at time.Time) {
	if unit != w.command.Unit || !w.receives(at, func(c *telematics.Command) { b.events.tell(c.Event(at)) }) {
		b.Counts.add(answersIdle)
	}
}

func (b *Broker) countSettled(c *telematics.Command) {
	if c.State.IsOpen() {
		return
	}
	b.Counts.add(answersSettled)
	if c.Late {
		b.Counts.add(answersLate)
		b.Logger.Info("late answer settled a command", "command", c.ID, "vehicle", c.Vehicle, "action", c.Action, "state", c.State)
	}
	if c.Late && c.Attempts == 0 {
		b.Counts.add(answersNeverSent)
		b.Logger.Error("a vehicle answered a command that is not known to have been sent", "command", c.ID, "vehicle", c.Vehicle, "unit", c.Unit, "state", c.State)
	}
}

// wake tells the caller: in process, or by a hint to the instance where it waits.
func (b *Broker) wake(ctx context.Context, c *telematics.Command) {
	if w := b.waiters.find(c.ID); w != nil {
		w.tell(c)
		return
	}
	if c.Instance == b.Instance || c.Late {
		return // nobody waits any more
	}
	b.background.Go(func() { // who hangs on a wake-up settles nothing meanwhile
		ctx, cancel := b.step(context.WithoutCancel(ctx))
		defer cancel()
		if err := b.Pending.Wake(ctx, c.Instance, c.ID); err != nil {
			b.Logger.Debug("wake-up lost; the waiter asks the record", "command", c.ID, "err", err)
		}
	})
}
