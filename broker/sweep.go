package broker

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/telematics"
)

const (
	// ownerGrace is how long after a deadline its owner may settle a command before
	// another instance believes it gone.
	ownerGrace = time.Second
	sweepBatch = 256
)

// errInHand means that a command is overdue while this process still waits for a store to
// claim it or to register it, which ends with the step. Then it will say what it knows.
var errInHand = errors.New("the command is in hand")

// sweep settles open commands whose owner is gone [LAW-6]. Others do while the clock is wrong.
func (b *Broker) sweep(ctx context.Context) error {
	return each(ctx, b.SweepEvery, func() {
		b.payOwed(ctx)
		b.payOwedLines(ctx)
		for b.clock.err() == nil && b.sweepOnce(ctx) {
		}
	})
}

// sweepOnce settles a batch, and reports whether there may be more.
func (b *Broker) sweepOnce(ctx context.Context) bool {
	ctx, cancel := b.step(ctx)
	defer cancel()
	overdue, err := b.Commands.Overdue(ctx, b.now().Add(-ownerGrace), sweepBatch)
	if err != nil {
		b.Logger.Warn("overdue commands not readable", "err", err)
		return false
	}
	var group errgroup.Group
	for _, c := range overdue {
		group.Go(func() error { return b.abandon(ctx, c) })
	}
	return group.Wait() == nil && len(overdue) == sweepBatch
}

// abandon settles a command whose owner is gone: it may have reached the air. Where this
// process is the owner, it knows better.
func (b *Broker) abandon(ctx context.Context, c telematics.Command) error {
	finding, known := b.owed.find(c.ID)
	if b.waiters.find(c.ID) != nil && !known {
		return errInHand
	}
	if !known || !c.State.MayBecome(finding.State) { // the unit has it, though we believe that it never left
		finding = telematics.Settlement{Command: c.ID, State: telematics.Unknown, At: b.recordTime()}
	}
	settled, ok, err := b.Commands.Settle(ctx, finding)
	if err != nil {
		b.Logger.Warn("overdue command not settled", "command", c.ID, "vehicle", c.Vehicle, "err", err)
		return err
	}
	if ok {
		b.metrics.commandsSwept.Inc()
		b.Logger.Info("overdue command settled for its owner", "command", c.ID, "vehicle", c.Vehicle, "action", c.Action)
		b.wake(ctx, settled)
		b.released.add(ctx, b.entry(settled))
	}
	return nil
}
