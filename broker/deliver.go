package broker

import (
	"context"
	"runtime/trace"
	"time"

	"motorpool/telematics"
)

// launched is a claimed command that was published, unless something is missing, or a halt kept it here.
type launched struct {
	waiter  *waiter
	message *telematics.Transmission
	halted  bool
	missing string // what is away without which it cannot leave, in words for the caller
	err     error
}

// carry brings a launched command to its vehicle, and returns it settled, with what that
// means for its caller.
func (b *Broker) carry(ctx context.Context, l launched) (settled *telematics.Command, err *telematics.Error) {
	defer b.letGo(ctx, l.waiter.command)
	if l.err != nil {
		settled, err = b.expire(ctx, l.waiter, l.missing, l.err)
	} else {
		settled = b.deliver(ctx, l)
		err = settled.Err()
	}
	b.metrics.settled(settled, b.now().Sub(l.waiter.command.Requested))
	return settled, err
}

// letGo forgets a command that nobody waits for any more.
func (b *Broker) letGo(ctx context.Context, c *telematics.Command) {
	b.released.add(ctx, b.entry(c))
	b.waiters.remove(c.ID)
}

// launch signs a claimed command, unless it was dated by a wrong clock, waits until it is registered, and publishes it for the first time, or says what is missing for that. It is to be
// carried in any case.
func (b *Broker) launch(ctx context.Context, c *telematics.Command) (l launched) {
	l.waiter = b.waiters.find(c.ID) // there since before its claim
	done := false
	defer func() {
		if !done { // a panic
			b.letGo(ctx, c)
		}
	}()
	var message *telematics.Transmission
	var unsigned error
	if l.waiter.wrongClock == nil {
		message, unsigned = b.sign(ctx, c)
	}
	err := b.registered(ctx, l.waiter) // in any case: what is released before it is added would stay
	switch {
	case l.waiter.wrongClock != nil:
		l.missing, l.err = theExactTime, l.waiter.wrongClock
	case unsigned != nil:
		l.missing, l.err = "The signing key", unsigned
	case err != nil:
		l.missing, l.err = "Redis", err
	default:
		l.message = message
		l.halted = !b.depart(ctx, l.waiter, message)
	}
	done = true
	return l
}

// depart publishes a command for the first time. It reports false for one that a halt finds here: it does not leave.
func (b *Broker) depart(ctx context.Context, w *waiter, message *telematics.Transmission) bool {
	if _, halted := b.knownHalt(w.command.Agency); halted {
		return false
	}
	now := time.Now()
	w.agenda = agenda{end: now.Add(w.command.Deadline.Sub(b.now())), note: now.Add(noteAfter)} // whatever the clock is set to meanwhile
	b.publish(ctx, w, message)
	return true
}

// sign returns the signed message of a claimed command.
func (b *Broker) sign(ctx context.Context, c *telematics.Command) (*telematics.Transmission, error) {
	defer trace.StartRegion(ctx, telematics.StepSign).End()
	message, err := b.Dialects.Encode(c, b.Key)
	return &message, err
}

// deliver publishes the message again and again, until the command is settled
// or its deadline has come. A command that a halt finds here does not leave again.
func (b *Broker) deliver(ctx context.Context, l launched) *telematics.Command {
	w := l.waiter
	if l.halted {
		return b.giveUp(ctx, w)
	}
	alarm := time.NewTimer(w.agenda.rest())
	defer alarm.Stop()
	defer trace.StartRegion(ctx, telematics.StepAir).End()
	for {
		select {
		case news := <-w.news:
			if !news.State.IsOpen() {
				return b.arrive(ctx, w, news)
			}
			b.heed(w, news)
		case <-alarm.C:
			if b.attend(ctx, w, l.message) {
				return b.giveUp(ctx, w)
			}
		}
		alarm.Reset(w.agenda.rest())
	}
}

// arrive returns a settled command with what only this process may know of it.
func (b *Broker) arrive(ctx context.Context, w *waiter, settled *telematics.Command) *telematics.Command {
	if settled.Attempts < w.progress().Attempts { // the answer came to another instance before our note
		b.note(ctx, w)
	}
	return w.complete(settled)
}

// heed has a unit that has received its command asked less often, and has that noted.
func (b *Broker) heed(w *waiter, news *telematics.Command) {
	if news.State != telematics.Received || w.patient {
		return
	}
	w.patient = true
	now := time.Now()
	w.agenda.again = now.Add(b.askAgain(w))
	if w.agenda.note.IsZero() {
		w.agenda.note = now.Add(noteAfter)
	}
}

// attend does what is due for a command, unless that is over: its deadline has come, or a halt keeps it from leaving.
func (b *Broker) attend(ctx context.Context, w *waiter, message *telematics.Transmission) (over bool) {
	if due(w.agenda.end) {
		return true
	}
	if due(w.agenda.again) {
		first := w.progress().Attempts == 0
		if _, halted := b.knownHalt(w.command.Agency); halted && first {
			return true
		}
		b.publish(ctx, w, message)
		if first || w.missedNote() {
			w.agenda.note = time.Now().Add(noteAfter)
		}
	}
	if due(w.agenda.note) {
		w.agenda.note = time.Time{}
		b.note(ctx, w)
	}
	return false
}

// publish hands the message to the MQTT client, unless it could arrive too late, and
// puts the next time on the agenda.
func (b *Broker) publish(ctx context.Context, w *waiter, message *telematics.Transmission) {
	c, attempts, now, dated := w.command, w.progress().Attempts, time.Now(), b.now()
	over := attempts > 0 && message.Once || w.isSilenced()
	if over || !dated.Before(message.LeaveBefore.Add(-expiryGuard)) || !dated.Before(c.Deadline) { // [LAW-4]
		w.agenda.again = time.Time{}
		return
	}
	if !b.mayLeave(c.Agency) {
		w.agenda.again = now.Add(airRetry)
		return
	}
	publishing := trace.StartRegion(ctx, telematics.StepPublish)
	err := b.Air.Publish(*message)
	publishing.End()
	if err != nil {
		b.metrics.publishFailures.Inc()
		b.Logger.Debug("command not published", "command", c.ID, "vehicle", c.Vehicle, "attempt", attempts+1, "err", err)
	} else {
		b.metrics.publications.Inc()
		if attempts == 0 {
			b.metrics.commandsPublished.Inc()
			b.events.sent(*c, now) // before anybody knows that it may have been received
		}
		w.handed(now)
	}
	w.agenda.again = time.Now().Add(b.askAgain(w))
}

// expire settles a command that never left, because something of ours is missing.
func (b *Broker) expire(ctx context.Context, w *waiter, missing string, cause error) (*telematics.Command, *telematics.Error) {
	c := w.command
	b.Logger.Warn("command not sent", "command", c.ID, "vehicle", c.Vehicle, "action", c.Action, "err", cause)
	settled := b.giveUp(ctx, w)
	err := settled.Err()
	if settled.State == telematics.Expired {
		err.Message, err.Cause = telematics.Unavailable(missing, cause).Message, cause
	}
	return settled, err
}

// giveUp settles a command without an answer. This process alone knows whether
// the MQTT client ever took the message: if not, nothing was executed.
func (b *Broker) giveUp(ctx context.Context, w *waiter) *telematics.Command {
	c := w.command
	finding := telematics.Settlement{Command: c.ID, State: telematics.Expired, At: b.recordTime(), Known: c, Progress: w.progress()}
	switch {
	case finding.Attempts > 0 || !finding.ReceivedAt.IsZero() || w.isSilenced(): // which the unit has heard
		finding.State = telematics.Unknown
	default:
		if halt, halted := b.knownHalt(c.Agency); halted {
			finding.Reason, finding.Detail = telematics.ByHalt, halt.Why
		}
	}
	b.owed.add(finding)
	stepping, cancel := b.step(ctx)
	defer cancel()
	settled, ok, err := b.Commands.Settle(stepping, finding)
	if err == nil {
		b.owed.remove(c.ID)
	}
	if err == nil && ok {
		return w.complete(settled)
	}
	if err == nil { // an answer came first
		looking, cancel := b.step(ctx)
		defer cancel()
		if news, err := b.Commands.News(looking, []telematics.CommandID{c.ID}, nil); err == nil && len(news) == 1 {
			if !news[0].State.IsOpen() {
				return w.complete(&news[0])
			}
			finding.State, finding.Reason, finding.Detail = telematics.Unknown, "", "" // the unit has it: it did leave
			if settled, ok, err := b.Commands.Settle(looking, finding); err == nil && ok {
				return w.complete(settled)
			}
		}
	}
	// The record is away. What we know is still true, and is owed to it.
	b.Logger.Error("command not settled", "command", c.ID, "vehicle", c.Vehicle, "state", finding.State, "err", err)
	given := *c // others read it
	given.State, given.Reason, given.Detail, given.Completed = finding.State, finding.Reason, finding.Detail, finding.At
	return w.complete(&given)
}
