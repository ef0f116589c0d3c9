package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"motorpool/telematics"
)

// theExactTime is named as unavailable in the caller's error message where the clock is wrong.
const theExactTime = "The exact time"

// clock holds whether this instance's clock is wrong, as far as known, and then the database's
// time. One that was not compared yet counts as correct until it is proven wrong.
type clock struct {
	mu       sync.Mutex
	compared bool
	wrong    error // nil: it is not known to be wrong
	// The database's time, and when it was read at the latest, by the monotonic clock.
	theirs, read time.Time
	trip         time.Duration // of the last comparison, there and back
	// Closed when the clock is found wrong, or right; nil: there is no waiter.
	changed chan struct{}

	turn   chan struct{} // of compareAnew, which guards what follows
	began  time.Time     // when the last one began
	result error         // of the last one
}

// state reports whether the clock was compared and found right, and returns a channel that is
// closed when that changes.
func (k *clock) state() (right bool, changed <-chan struct{}) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.changed == nil {
		k.changed = make(chan struct{})
	}
	return k.compared && k.wrong == nil, k.changed
}

func (k *clock) err() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.wrong
}

// right returns the time of the database's clock where the clock is known to be wrong, however it
// is set meanwhile, or else now. It is never later than the database's time, so that a settlement
// is not dated after what follows it.
func (k *clock) right(now time.Time) time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.wrong == nil {
		return now
	}
	return k.theirs.Add(time.Since(k.read))
}

// markWrong notes that the clock is wrong: it is ahead of the database's time by between least and
// most, which are negative where it is behind. It reports whether that is new.
func (k *clock) markWrong(theirs time.Time, least, most time.Duration) (wrong error, isNew bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	isNew = k.wrong == nil
	// A sharper comparison holds, unless the database's clock was set back.
	if known := k.theirs.Add(time.Since(k.read)); isNew || known.Before(theirs) || known.Sub(theirs) > most-least {
		k.theirs, k.read = theirs, time.Now()
	}
	k.compared, k.wrong = true, wrongBy(least, most)
	if isNew {
		k.notifyChanged()
	}
	return k.wrong, isNew
}

// markRight notes a comparison that did not prove the clock wrong. A clock that was wrong becomes
// right only by a sure comparison. It reports whether that has happened.
func (k *clock) markRight(sure bool) (wasWrong bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wasWrong = k.wrong != nil
	if wasWrong && !sure {
		return false
	}
	if wasWrong || !k.compared {
		k.compared, k.wrong = true, nil
		k.notifyChanged()
	}
	return wasWrong
}

// notifyChanged wakes those that wait for a change. The caller holds mu.
func (k *clock) notifyChanged() {
	if k.changed != nil {
		close(k.changed)
		k.changed = nil
	}
}

func wrongBy(least, most time.Duration) error {
	by := max(least, -most) // proven
	return fmt.Errorf(
		"this machine's clock differs from the database's by %v, at most %v may be", telematics.Words(by),
		telematics.Words(MaxSkew),
	)
}

// now returns the time of this instance's clock, which dates signed commands and received messages.
func (b *Broker) now() time.Time { return b.config.Now().UTC() }

// recordTime returns the time that dates stored outcomes and audit log entries: that of this
// instance's clock, or of the database's where that one is known to be wrong.
func (b *Broker) recordTime() time.Time { return b.clock.right(b.now()) }

// timeFor returns the time by which a command here is published: not before the time that has
// passed since its request, where the clock was set back meanwhile.
func (b *Broker) timeFor(w *waiter) time.Time {
	now := b.now()
	if passed := w.command.Requested.Add(time.Since(w.began)); passed.After(now) {
		return passed
	}
	return now
}

// roundTrip returns how long the last comparison took.
func (k *clock) roundTrip() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.trip
}

func (k *clock) setRoundTrip(took time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.trip = took
}

// watchClock compares the clock with the database's every clockEvery, until the context ends.
func (b *Broker) watchClock(ctx context.Context) error {
	// An unavailable database is logged where it is needed.
	compare := func() { _ = b.CompareClock(ctx) }
	compare()
	return b.each(ctx, clockEvery, "compare clock", compare)
}

// CompareClock compares this instance's clock with the database's. It blocks for one step at most,
// and returns an error where the clock is known to differ by more than MaxSkew, or the database did
// not reply.
//
// The database reads its clock at some moment of the round trip, so the comparison is uncertain by
// the time that the round trip takes. Only a difference beyond that proves the clock wrong; then
// only a short enough round trip proves it right.
func (b *Broker) CompareClock(ctx context.Context) error {
	ctx, cancel := b.step(ctx)
	defer cancel()
	before, asked := b.now(), time.Now()
	theirs, err := b.config.Clock.Time(ctx)
	if err != nil {
		return err
	}
	b.clock.setRoundTrip(time.Since(asked))
	after := b.now()
	least, most := before.Sub(theirs), after.Sub(theirs) // it is ahead by
	b.metrics.clockOffset.Set((least + (most-least)/2).Seconds())
	switch {
	case least > MaxSkew, most < -MaxSkew:
		return b.reportWrongClock(theirs, least, most)
	case b.clock.markRight(least >= -MaxSkew && most <= MaxSkew):
		b.config.Logger.Info("clock correct again")
	}
	return b.clock.err()
}

// compareAnew compares the clocks by a deadline, as CompareClock does. Those who ask concurrently
// share a comparison that began after they had asked: one from before a suspension of the machine
// tells nothing.
func (b *Broker) compareAnew(ctx context.Context, deadline time.Time) error {
	asked := time.Now()
	ctx, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	select {
	case b.clock.turn <- struct{}{}:
		defer func() { <-b.clock.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if b.clock.began.Before(asked) {
		began, result := time.Now(), b.CompareClock(ctx)
		if ctx.Err() != nil {
			return result // says nothing to those who have more time
		}
		b.clock.began, b.clock.result = began, result
	}
	return b.clock.result
}

// checkClock returns an error for a command that must not be signed, since a wrong clock dated it.
// claimed is the database's time of its claim; zero: not known.
func (b *Broker) checkClock(ctx context.Context, c *telematics.Command, claimed time.Time) error {
	if claimed.IsZero() {
		return b.CompareClock(ctx)
	}
	// It was ordered before it was claimed.
	least, most := c.Requested.Sub(claimed), b.now().Sub(claimed)
	if least > MaxSkew || most < -MaxSkew {
		return b.reportWrongClock(claimed, least, most)
	}
	return nil
}

func (b *Broker) reportWrongClock(theirs time.Time, least, most time.Duration) error {
	wrong, isNew := b.clock.markWrong(theirs, least, most)
	if isNew {
		b.metrics.clockWrong.Inc()
		b.config.Logger.Error("clock wrong, no command is sent and nothing is received", "ahead", most, "err", wrong)
	}
	return wrong
}

// WhileClockRight calls run while this instance's clock agrees with the database's, for the first
// time after the first comparison. The context of run ends when the clocks differ, and run is
// called again when they agree again. WhileClockRight blocks until the context ends or run returns
// by itself, and returns the error of run.
func (b *Broker) WhileClockRight(ctx context.Context, run func(context.Context) error) error {
	for ctx.Err() == nil {
		right, changed := b.clock.state()
		if !right {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		running, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- b.config.Guard.Keep(running, "run while the clock is right", run) }()
		select {
		case err := <-ended:
			stop()
			return err
		case <-changed:
			stop()
			if err := <-ended; err != nil {
				return err
			}
		}
	}
	return nil
}

// clockBehind is the latest unit that rejected a command because it was dated ahead of its clock.
type clockBehind struct {
	mu   sync.Mutex
	unit telematics.Unit
	at   time.Time
}

// other notes such a rejection, and returns another unit that had one within clockAlarmWithin.
func (k *clockBehind) other(unit telematics.Unit, now time.Time) (telematics.Unit, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, at := k.unit, k.at
	k.unit, k.at = unit, now
	return last, last != "" && last != unit && now.Sub(at) < clockAlarmWithin
}

// noteClockBehind raises an alarm where more than one unit rejects a command as dated ahead of its
// clock: a single unit's clock is probably wrong itself; with several, the clock of the instance
// that signed probably is.
func (b *Broker) noteClockBehind(c *telematics.Command) {
	if c.State != telematics.Rejected || c.Reason != telematics.ClockBehind {
		return
	}
	b.metrics.answersClockBehind.Inc()
	if other, alarm := b.behind.other(c.Unit, time.Now()); alarm {
		b.metrics.clockAlarms.Inc()
		b.config.Logger.Warn("more than one unit rejects commands as dated ahead of its clock: check the clocks of the instances",
			"unit", c.Unit, "other", other, "instance", c.Instance, "command", c.ID)
	}
}
