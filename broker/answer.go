package broker

import (
	"context"
	"errors"
	"time"

	"motorpool/broker/besteffort"
	"motorpool/broker/ingest"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// queuedAnswer is an answer that waits to be handled.
type queuedAnswer struct {
	unit        telematics.Unit
	answer      telematics.Answer
	at          time.Time // of its receipt
	protocol    telematics.Protocol
	redelivered bool           // the MQTT broker may have delivered it before
	size        int            // of its message
	from        *ingest.Sender // nil: it counts against no unit
}

// laterAnswer is an answer that waits until it is queued again.
type laterAnswer struct {
	*queuedAnswer
	queue chan<- *queuedAnswer
	due   time.Time
}

// Answer takes a message from a unit's ack topic. It decodes and queues it, and does not
// block [LAW-8].
func (b *Broker) Answer(m telematics.Message) {
	b.metrics.answers.Inc()
	_ = b.config.Guard.Do("receive answer", func() { b.receiveAnswer(m) })
}

func (b *Broker) receiveAnswer(m telematics.Message) {
	if m.Retained {
		b.ingest.Reject(m.Unit, ingest.Answer, telematics.KeptByBroker)
		return
	}
	if len(m.Payload) > telematics.MaxMessage { // before it takes room in the queue
		b.ingest.Reject(m.Unit, ingest.Answer, telematics.TooLarge)
		return
	}
	now := b.now()
	decoding := tracing.Step(context.Background(), delivery.StepDecode)
	answer, dropped, err := m.DecodeAnswer(now)
	decoding.End()
	if errors.Is(err, telematics.ErrOtherKind) {
		return
	}
	if err != nil {
		b.ingest.Reject(m.Unit, ingest.Answer, telematics.Malformed)
		b.config.Logger.Debug("answer not readable", "unit", m.Unit, "err", err)
		return
	}
	b.ingest.DropFields(m.Unit, dropped)
	if answer.Report != nil {
		answer.Report.Bound(now)
	}
	b.queueAnswer(&queuedAnswer{
		unit: m.Unit, answer: answer, at: now, protocol: m.Dialect.Protocol(),
		redelivered: m.Redelivered, size: len(m.Payload),
	})
}

// queueAnswer queues an answer so that it delays no other: before all others where its command has
// a waiter here, after them within the allowance of its unit, and beyond that only where the
// pending table has its command.
func (b *Broker) queueAnswer(a *queuedAnswer) {
	if w := b.waiters.of(a.unit, a.answer.Command); w != nil && w.countAnswer(a.answer.State) {
		b.enqueue(b.first, a, ingest.Answer)
		return
	}
	var ok bool
	if a.from, ok = b.allowances.answers.Admit(a.unit, a.size, a.at); ok {
		b.enqueue(b.answers, a, ingest.Answer)
		return
	}
	if a.from, ok = b.allowances.overAllowance.Admit(a.unit, a.size, a.at); ok {
		b.enqueue(b.overAllowance, a, ingest.Answer)
		return
	}
	b.ingest.Limit(a.unit, ingest.Answer)
}

func (b *Broker) enqueue(queue chan<- *queuedAnswer, a *queuedAnswer, kind ingest.Kind) {
	select {
	case queue <- a:
	default:
		if b.enqueueLater(queue, a) {
			return
		}
		// The command is published again, and the unit repeats its answer [CMD-5].
		a.from.Handled(a.size)
		b.metrics.drop(kind, queueFull, 1)
	}
}

// lookUpOverAllowance looks up answers of units that are beyond their allowance, until the context
// ends.
func (b *Broker) lookUpOverAllowance(ctx context.Context) error {
	ingest.InBatches(ctx, b.overAllowance, 0, b.config.StepTimeout, func(batch []*queuedAnswer) {
		_ = b.config.Guard.Do("look up answers", func() { b.lookUp(batch) })
	})
	return ctx.Err()
}

// lookUp queues the answers whose commands are in the pending table, within a further allowance: a
// unit may flood the answers to its own command.
func (b *Broker) lookUp(batch []*queuedAnswer) {
	ctx, cancel := context.WithTimeout(context.Background(), lookupTimeout)
	defer cancel()
	entries := make([]delivery.Pending, len(batch))
	for i, a := range batch {
		a.from.Handled(a.size)
		entries[i] = delivery.Pending{Unit: a.unit, Command: a.answer.Command}
	}
	pending, err := b.config.Pending.Contains(ctx, entries)
	for i, a := range batch {
		var ok bool
		if err == nil && pending[i] {
			a.from, ok = b.allowances.pending.Admit(a.unit, a.size, a.at)
		}
		if ok {
			b.enqueue(b.answers, a, ingest.Answer)
		} else {
			b.ingest.Limit(a.unit, ingest.Answer)
		}
	}
}

// handleAnswers handles the answers to commands that have a waiter here, and after them the others,
// until the context ends, and then those that are left. Of a nil queue there are none.
func (b *Broker) handleAnswers(ctx context.Context, others <-chan *queuedAnswer) error {
	// An answer that left a queue is handled in any case; each step has a separate timeout.
	handling := tracing.Detach(ctx)
	for {
		select {
		case a := <-b.first:
			b.handleAnswer(handling, a)
			continue
		default:
		}
		select {
		case <-ctx.Done():
			b.drainAnswers(handling)
			return ctx.Err()
		case a := <-b.first:
			b.handleAnswer(handling, a)
		case a := <-others:
			b.handleAnswer(handling, a)
		}
	}
}

// drainAnswers handles the queued answers at shutdown: the MQTT broker has their acknowledgements,
// so no other instance gets them.
func (b *Broker) drainAnswers(ctx context.Context) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	for _, queue := range [...]<-chan *queuedAnswer{b.first, b.answers} {
		for a := range ingest.Queued(queue) {
			b.handleAnswer(ctx, a)
		}
	}
}

// noReport is for answers with no report to wait for.
func noReport(context.Context) {}

func (b *Broker) handleAnswer(ctx context.Context, a *queuedAnswer) {
	a.from.Handled(a.size)
	a.from = nil
	_ = b.config.Guard.Do("handle answer", func() { b.applyAnswer(ctx, a) })
}

func (b *Broker) applyAnswer(ctx context.Context, a *queuedAnswer) {
	assigned, said := true, *a
	if a.answer.Command == telematics.NoCommand {
		var err error
		a.answer, assigned, err = b.bestEffort.Assign(
			ctx, besteffort.Answer{Answer: a.answer, Unit: a.unit, At: a.at, Redelivered: a.redelivered},
		)
		if err != nil {
			b.answerAgain(&said, err)
		}
	}
	// A caller may read the state next, so the report is stored before the answer wakes it.
	observation := delivery.Observation{Unit: a.unit, Protocol: a.protocol, At: a.at, Report: a.answer.Report}
	w := b.waiters.of(a.unit, a.answer.Command)
	if w != nil {
		observation.Asked = w.command.Vehicle
	}
	reported := noReport
	if observation.Report != nil {
		reported = b.ingest.Await(observation)
	} else {
		b.ingest.SignOfLife(observation)
	}
	switch {
	case !assigned:
	case w != nil || said.answer.Command == telematics.NoCommand || b.isPending(ctx, a.unit, a.answer.Command):
		if err := b.settle(ctx, a.unit, a.answer, a.at, w, reported); err != nil {
			b.answerAgain(&said, err)
		}
		return
	case b.settled.contains(a.unit, a.answer):
		// The unit repeats a recorded answer, because of a retransmission.
		b.metrics.answersWithoutEffect.Inc()
	default:
		b.enqueue(b.uncorrelated, a, ingest.Answer)
	}
	reported(ctx)
}

// answerAgain handles an answer once more that Postgres has not taken, or whose command may not
// have been sent.
func (b *Broker) answerAgain(a *queuedAnswer, because error) {
	if !b.enqueueLater(b.answers, a) {
		b.loseAnswer(a.unit, a.answer, because)
	}
}

// enqueueLater queues an answer a moment later that its unit does not repeat, for as long as a unit
// whose answers name no command gets no other. It reports false for any other answer: a unit that
// executes no command twice repeats its answers. So it does where its unit is beyond the allowance
// of those that wait, or too many wait.
func (b *Broker) enqueueLater(queue chan<- *queuedAnswer, a *queuedAnswer) bool {
	if b.config.Dialects.Assurance(a.protocol, nil, telematics.Lock).Deduplicated || b.now().Sub(a.at) > telematics.AnswerWithin {
		return false
	}
	a.from.Handled(a.size)
	from, ok := b.allowances.later.Admit(a.unit, a.size, b.now())
	if a.from = from; !ok {
		return false
	}
	select {
	case b.later <- laterAnswer{a, queue, time.Now().Add(answerAgainAfter)}:
		return true
	default:
		from.Handled(a.size)
		a.from = nil
		return false
	}
}

// queueAgain queues the answers of enqueueLater, each at its time, until the context ends.
func (b *Broker) queueAgain(ctx context.Context) error {
	for {
		select {
		case a := <-b.later:
			select {
			case <-time.After(time.Until(a.due)):
			case <-ctx.Done():
			}
			b.queueNow(a)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (b *Broker) queueNow(a laterAnswer) {
	a.from.Handled(a.size)
	a.from = nil
	b.enqueue(a.queue, a.queuedAnswer, ingest.Answer)
}

// isPending reports whether a caller may wait for the answer at another instance. The pending table
// may have lost the entry, so after false the answer is still handled, in the slower queue.
func (b *Broker) isPending(ctx context.Context, unit telematics.Unit, id telematics.CommandID) bool {
	found, err := b.inTable(ctx, unit, id)
	return found || err != nil
}

// isKnownPending reports whether a command is known to wait for an answer, here or at another
// instance: it is not while Redis is unavailable, which may have refused to register it.
func (b *Broker) isKnownPending(ctx context.Context, unit telematics.Unit, id telematics.CommandID) bool {
	if b.waiters.of(unit, id) != nil {
		return true
	}
	found, _ := b.inTable(ctx, unit, id)
	return found
}

func (b *Broker) inTable(ctx context.Context, unit telematics.Unit, id telematics.CommandID) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	_, found, err := b.config.Pending.Lookup(ctx, unit, id)
	return found, err
}

// handleUncorrelated handles answers to no command in flight, until the context ends, and then
// those that are left, for no longer than one step may take.
func (b *Broker) handleUncorrelated(
	ctx context.Context, uncorrelated <-chan *queuedAnswer, settle func(context.Context, *queuedAnswer),
) error {
	handle := func(ctx context.Context, a *queuedAnswer) {
		_ = b.config.Guard.Do("handle uncorrelated answer", func() { settle(ctx, a) })
	}
	handling := tracing.Detach(ctx)
	for {
		select {
		case a := <-uncorrelated:
			handle(handling, a)
		case <-ctx.Done():
			draining, cancel := b.step(handling)
			defer cancel()
			for a := range ingest.Queued(uncorrelated) {
				handle(draining, a)
			}
			return nil
		}
	}
}

func (b *Broker) settleUncorrelated(ctx context.Context, a *queuedAnswer) {
	// Its report is stored, or about to be.
	if err := b.settle(ctx, a.unit, a.answer, a.at, b.waiters.of(a.unit, a.answer.Command), noReport); err != nil {
		b.answerAgain(a, err)
	}
}
