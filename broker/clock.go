package broker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"motorpool/telematics"
)

// theExactTime is what is missing, in words for the caller, where the clock is wrong.
const theExactTime = "The exact time"

// clock is what is known of how wrong this instance's clock is. The zero value believes in it until
// it is proven wrong.
type clock struct {
	mu       sync.Mutex
	compared bool
	wrong    error         // nil: it is not known to be wrong
	ahead    time.Duration // of the record's clock at most, where it is wrong
	// Closed when the above changes; nil: there is no waiter.
	changed chan struct{}
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

// correction returns what to add to this instance's time before it is stored; zero unless the clock
// is known to be wrong. A corrected time is never later than the database's, so that a settlement
// is not dated after what follows it.
func (k *clock) correction() time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	return -k.ahead
}

// markWrong notes that the clock is wrong: it is ahead by between least and most, which are
// negative where it is behind. It reports whether that is new.
func (k *clock) markWrong(least, most time.Duration) (wrong error, isNew bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	isNew = k.wrong == nil
	if !isNew && least <= k.ahead { // the clock was not set again, so the sharper comparison holds
		most = min(most, k.ahead)
	}
	k.compared, k.ahead, k.wrong = true, most, wrongBy(least, most)
	if isNew {
		k.notifyChanged()
	}
	return k.wrong, isNew
}

// markRight notes that the clock was compared and not found wrong. Once it was wrong, only a sure
// comparison makes it right. It reports whether it was wrong.
func (k *clock) markRight(sure bool) (wasWrong bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wasWrong = k.wrong != nil
	if wasWrong && !sure {
		return false
	}
	if wasWrong || !k.compared {
		k.compared, k.ahead, k.wrong = true, 0, nil
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
	return fmt.Errorf("this machine's clock differs from the database's by %v, at most %v may be", by.Round(time.Millisecond), MaxSkew)
}

// now is this instance's clock, as it dates what is signed, and what comes.
func (b *Broker) now() time.Time { return b.Now().UTC() }

// recordTime is what this instance finds out is dated by on record: its clock, corrected where that
// is known to be wrong.
func (b *Broker) recordTime() time.Time { return b.now().Add(b.clock.correction()) }

// watchClock compares the clock with the record's again and again, until the context ends.
func (b *Broker) watchClock(ctx context.Context) error {
	tick := time.NewTicker(clockEvery)
	defer tick.Stop()
	for {
		_ = b.CompareClock(ctx) // a record that is unavailable is logged where it is needed
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// CompareClock compares this instance's clock with the record's. It returns an error where they
// differ by more than MaxSkew, or where the record did not answer.
//
// The record read its clock at some moment of the round trip, so the comparison is unsure by as
// much as the round trip takes. Only what is beyond that proves the clock wrong; and once it is,
// only a round trip that is quick enough proves it right.
func (b *Broker) CompareClock(ctx context.Context) error {
	ctx, cancel := b.step(ctx)
	defer cancel()
	before := b.now()
	theirs, err := b.Clock.Time(ctx)
	if err != nil {
		return err
	}
	after := b.now()
	least, most := before.Sub(theirs), after.Sub(theirs) // it is ahead by
	b.metrics.clockOffset.Set((least + (most-least)/2).Seconds())
	switch {
	case least > MaxSkew, most < -MaxSkew:
		return b.reportWrongClock(least, most)
	case b.clock.markRight(least >= -MaxSkew && most <= MaxSkew):
		b.Logger.Info("clock correct again")
	}
	return b.clock.err()
}

// checkClock returns an error for a command that is not to be signed: that was dated by a wrong
// clock. It was claimed when the record's clock said so; zero: not known.
func (b *Broker) checkClock(ctx context.Context, c *telematics.Command, claimed time.Time) error {
	if claimed.IsZero() {
		return b.CompareClock(ctx)
	}
	// It was ordered before it was claimed.
	least, most := c.Requested.Sub(claimed), b.now().Sub(claimed)
	if least > MaxSkew || most < -MaxSkew {
		return b.reportWrongClock(least, most)
	}
	return nil
}

func (b *Broker) reportWrongClock(least, most time.Duration) error {
	wrong, isNew := b.clock.markWrong(least, most)
	if isNew {
		b.metrics.clockWrong.Inc()
		b.Logger.Error("clock wrong, no command is sent and nothing is received", "ahead", most.Round(time.Millisecond), "err", wrong)
	}
	return wrong
}

// WhileClockRight runs something while this instance's clock agrees with the record's: its context
// ends when they differ, and it is run again when they agree again. It returns when the context
// ends, or what was run returns earlier. The first comparison is awaited.
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
		go func() { ended <- run(running) }()
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

// other notes that a unit did, and returns another one that did a short time ago.
func (k *clockBehind) other(unit telematics.Unit, now time.Time) (telematics.Unit, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	last, at := k.unit, k.at
	k.unit, k.at = unit, now
	return last, last != "" && last != unit && now.Sub(at) < clockAlarmWithin
}

// noteClockBehind raises an alarm where more than one unit says that a command was dated ahead of
// its clock: one such unit is wrong itself, several make it likely that the instance is that
// signed.
func (b *Broker) noteClockBehind(c *telematics.Command) {
	if c.State != telematics.Rejected || c.Reason != telematics.ClockBehind {
		return
	}
	b.metrics.answersClockBehind.Inc()
	if other, alarm := b.behind.other(c.Unit, time.Now()); alarm {
		b.metrics.clockAlarms.Inc()
		b.Logger.Warn("more than one unit rejects commands as dated ahead of its clock: check the clocks of the instances",
			"unit", c.Unit, "other", other, "instance", c.Instance, "command", c.ID)
	}
}
