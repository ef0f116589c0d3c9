package broker

import (
	"context"
	"time"

	"motorpool/broker/besteffort"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// sign returns the signed message of a claimed command.
func (b *Broker) sign(ctx context.Context, c *telematics.Command) (*telematics.Transmission, error) {
	defer tracing.Step(ctx, delivery.StepSign).End()
	if span := tracing.Traceparent(ctx); span != "" {
		traced := *c // others read it
		traced.Trace = span
		c = &traced
	}
	message, err := b.config.Dialects.Encode(c, b.config.Key)
	return &message, err
}

// publish publishes the message of a command, unless it could arrive too late, and sets the timer
// of its retransmission.
func (b *Broker) publish(ctx context.Context, w *waiter) {
	c, attempts := w.command, w.progress().Attempts
	now, dated := time.Now(), b.timeFor(w)
	message := *w.message
	message.Repeated = attempts > 0
	if attempts == 0 {
		early, trip := besteffort.Delay(&message, c.Deadline, dated), b.clock.roundTrip()
		if early > trip {
			w.timers.retransmit = now.Add(early - trip)
			return
		}
		// It waits, maybe on a machine that is suspended meanwhile, and the unit checks no expiry.
		waits := early > 0 || !w.timers.retransmit.IsZero()
		if waits && !c.Assurance.Expiring && now.Sub(w.compared) > trip {
			if err := b.compareAnew(ctx, w.timers.deadline); err != nil {
				b.logUnpublished(ctx, c, attempts, err)
				w.timers.retransmit = time.Now().Add(publishRetry)
				return
			}
			w.compared = time.Now()
			now, dated = w.compared, b.timeFor(w)
			early = besteffort.Delay(&message, c.Deadline, dated)
		}
		if early > 0 {
			w.timers.retransmit = now.Add(early)
			return
		}
	}
	over := w.stopped.Load() || !dated.Before(c.Deadline)
	if !over && message.Repeated && !c.Assurance.Deduplicated { // the unit would execute it again
		w.timers.retransmit = b.bestEffort.Inquire(ctx, c, w.sincePublished(), w.received)
		return
	}
	if over || !dated.Before(message.LeaveBefore.Add(-expiryGuard)) { // [LAW-4]
		w.timers.retransmit = time.Time{}
		return
	}
	if !b.mayPublish(c.Agency) {
		w.timers.retransmit = now.Add(publishRetry)
		return
	}
	publishing := tracing.Step(ctx, delivery.StepPublish)
	err := b.config.Publisher.Publish(message)
	publishing.Set(tracing.Int(attempt, attempts+1))
	if err != nil {
		publishing.Fail("not published")
	}
	publishing.End()
	if err != nil {
		b.metrics.publishFailures.Inc()
		b.logUnpublished(ctx, c, attempts, err)
	} else {
		b.metrics.publications.Inc()
		if attempts == 0 {
			b.metrics.commandsPublished.Inc()
			b.events.sent(c, dated) // before it can be received
		}
		w.markPublished(dated)
	}
	w.timers.retransmit = time.Now().Add(b.retransmissionTimeout(w))
}

func (b *Broker) logUnpublished(ctx context.Context, c *telematics.Command, attempts int, err error) {
	b.config.Logger.DebugContext(
		ctx, "command not published", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "attempt", attempts+1, "err", err,
	)
}

// runTimers retransmits a command, or stores its progress, where that is due. It reports true where
// the command is over: its deadline has passed, or a halt stops its first publication.
func (b *Broker) runTimers(ctx context.Context, w *waiter) (over bool) {
	if due(w.timers.deadline) {
		return true
	}
	if due(w.timers.retransmit) {
		first := w.progress().Attempts == 0
		if first && b.isHalted(w.command.Agency) {
			return true
		}
		b.publish(ctx, w)
		if first || w.progressLost.Swap(false) {
			w.timers.progress = time.Now().Add(progressAfter)
		}
	}
	if due(w.timers.progress) {
		w.timers.progress = time.Time{}
		b.storeProgress(ctx, w)
	}
	return false
}

// backOff lengthens the retransmission timeout of a command that its unit has received, and sets
// the timer that stores its progress.
func (b *Broker) backOff(w *waiter, update *telematics.Command) {
	if update.State != telematics.Received || w.received {
		return
	}
	w.received = true
	if w.progress().Attempts == 0 { // a repetition of an earlier answer, at another instance
		return
	}
	now := time.Now()
	w.timers.retransmit = now.Add(b.retransmissionTimeout(w))
	if !w.command.Assurance.Deduplicated {
		w.timers.retransmit = now.Add(besteffort.InquireEvery)
	}
	if w.timers.progress.IsZero() {
		w.timers.progress = now.Add(progressAfter)
	}
}
