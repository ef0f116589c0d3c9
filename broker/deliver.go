package broker

import (
	"context"
	"runtime/trace"
	"time"

	"motorpool/telematics"
)

// carry brings a claimed command to its vehicle, and returns it settled, with what that
// means for its caller.
func (b *Broker) carry(ctx context.Context, c *telematics.Command) (*telematics.Command, *telematics.Error) {
	w := b.waiters.add(c) // [LAW-2]
	defer b.letGo(ctx, c)
	message, missing, err := b.prepare(ctx, c)
	if err != nil {
		return b.expire(ctx, c, w, missing, err)
	}
	settled := b.deliver(ctx, c, w, message)
	return settled, settled.Err()
}

// letGo forgets a command that nobody waits for any more.
func (b *Broker) letGo(ctx context.Context, c *telematics.Command) {
	b.released.add(ctx, b.entry(c))
	b.waiters.remove(c.ID)
	b.inHand.Delete(c.ID)
}

// prepare signs a command and waits until it is registered, or says what is missing for that.
func (b *Broker) prepare(ctx context.Context, c *telematics.Command) (message *telematics.Transmission, missing string, err error) {
	message, unsigned := b.sign(ctx, c)
	err = b.registered(ctx, c.ID) // in any case: what is released before it is added would stay
	switch {
	case unsigned != nil:
		return nil, "The signing key", unsigned
	case err != nil:
		return nil, "Redis", err
	}
	return message, "", nil
}

func (b *Broker) sign(ctx context.Context, c *telematics.Command) (*telematics.Transmission, error) {
	defer trace.StartRegion(ctx, telematics.StepSign).End()
	message, err := b.Dialects.Encode(c, b.Key)
	return &message, err
}

// deliver publishes the message, again and again, until the command is settled
// or its deadline has come. A command that a halt finds here has not left, or does not
// leave again.
func (b *Broker) deliver(ctx context.Context, c *telematics.Command, w *waiter, message *telematics.Transmission) *telematics.Command {
	deadline := time.NewTimer(time.Until(c.Deadline))
	defer deadline.Stop()
	if _, halted := b.knownHalt(c.Agency); halted {
		return b.giveUp(ctx, c, w)
	}
	again := time.NewTimer(b.publish(ctx, c, w, message, false))
	defer again.Stop()
	note := time.NewTimer(noteAfter)
	defer note.Stop()
	defer trace.StartRegion(ctx, telematics.StepAir).End()
	received, noting := false, true
	for {
		select {
		case news := <-w.news:
			if !news.State.IsOpen() {
				if news.Attempts < w.progress().Attempts { // the answer came to another instance before our note
					b.note(ctx, w)
				}
				return w.complete(news)
			}
			if news.State == telematics.Received && !received {
				received = true
				again.Reset(b.askAgain(c, w.progress().Attempts, received))
				if !noting {
					note.Reset(noteAfter)
					noting = true
				}
			}
		case <-again.C:
			first := w.progress().Attempts == 0
			if _, halted := b.knownHalt(c.Agency); halted && first {
				return b.giveUp(ctx, c, w)
			}
			again.Reset(b.publish(ctx, c, w, message, received))
			if first || w.missedNote() {
				note.Reset(noteAfter)
				noting = true
			}
		case <-note.C:
			b.note(ctx, w)
			noting = false
		case <-deadline.C:
			return b.giveUp(ctx, c, w)
		}
	}
}

// publish hands the message to the MQTT client, unless it could arrive too late, and
// returns how long to wait before the next time.
func (b *Broker) publish(ctx context.Context, c *telematics.Command, w *waiter, message *telematics.Transmission, received bool) time.Duration {
	attempts := w.progress().Attempts
	now := time.Now()
	over := attempts > 0 && message.Once
	if over || !now.Before(message.LeaveBefore.Add(-expiryGuard)) || !now.Before(c.Deadline) { // [LAW-4]
		return time.Until(c.Deadline) + time.Second // the deadline comes first
	}
	if !b.mayLeave(c.Agency) {
		return airRetry
	}
	publishing := trace.StartRegion(ctx, telematics.StepPublish)
	err := b.Air.Publish(*message)
	publishing.End()
	if err != nil {
		b.Counts.add(publishFailures)
		b.Logger.Debug("command not published", "command", c.ID, "vehicle", c.Vehicle, "attempt", attempts+1, "err", err)
		if attempts == 0 {
			return airRetry
		}
		return b.askAgain(c, attempts, received)
	}
	b.Counts.add(publications)
	if attempts == 0 {
		b.Counts.add(commandsSent)
		b.events.sent(*c, now) // before anybody knows that it may have been received
	}
	return b.askAgain(c, w.handed(now), received)
}

// expire settles a command that never left, because something of ours is missing.
func (b *Broker) expire(ctx context.Context, c *telematics.Command, w *waiter, missing string, cause error) (*telematics.Command, *telematics.Error) {
	b.Logger.Warn("command not sent", "command", c.ID, "vehicle", c.Vehicle, "action", c.Action, "err", cause)
	settled := b.giveUp(ctx, c, w)
	err := settled.Err()
	if settled.State == telematics.Expired {
		err.Message, err.Cause = telematics.Unavailable(missing, cause).Message, cause
	}
	return settled, err
}

// giveUp settles a command without an answer. This process alone knows whether
// the MQTT client ever took the message: if not, nothing was executed.
func (b *Broker) giveUp(ctx context.Context, c *telematics.Command, w *waiter) *telematics.Command {
	finding := telematics.Settlement{Command: c.ID, State: telematics.Expired, At: time.Now().UTC(), Known: c, Progress: w.progress()}
	switch {
	case finding.Attempts > 0 || !finding.ReceivedAt.IsZero():
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
		return w.complete(&settled)
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
				return w.complete(&settled)
			}
		}
	}
	// The record is away. What we know is still true, and is owed to it.
	b.Logger.Error("command not settled", "command", c.ID, "vehicle", c.Vehicle, "state", finding.State, "err", err)
	given := *c // others read it
	given.State, given.Reason, given.Detail, given.Completed = finding.State, finding.Reason, finding.Detail, finding.At
	return w.complete(&given)
}
