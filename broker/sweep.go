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

// errClaiming means that a command is overdue before its claim has come back. Its claimer
// will say, within its step, that nothing was sent.
var errClaiming = errors.New("the claim is under way")

// sweep settles open commands whose owner is gone [LAW-6].
func (b *Broker) sweep(ctx context.Context) error {
	tick := time.NewTicker(b.SweepEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			b.payOwed(ctx)
			b.payOwedLines(ctx)
			for b.sweepOnce(ctx) {
			}
		}
	}
}

// sweepOnce settles a batch, and reports whether there may be more.
func (b *Broker) sweepOnce(ctx context.Context) bool {
	ctx, cancel := b.step(ctx)
	defer cancel()
	overdue, err := b.Commands.Overdue(ctx, time.Now().Add(-ownerGrace), sweepBatch)
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
	if _, here := b.claiming.Load(c.ID); here {
		return errClaiming
	}
	finding, known := b.owed.find(c.ID)
	if !known || !c.State.MayBecome(finding.State) { // the unit has it, though we believe that it never left
		finding = telematics.Settlement{Command: c.ID, State: telematics.Unknown, At: time.Now().UTC()}
	}
	settled, ok, err := b.Commands.Settle(ctx, finding)
	if err != nil {
		b.Logger.Warn("overdue command not settled", "command", c.ID, "vehicle", c.Vehicle, "err", err)
		return err
	}
	if ok {
		b.Counts.add(commandsSwept)
		b.Logger.Info("overdue command settled for its owner", "command", c.ID, "vehicle", c.Vehicle, "action", c.Action)
		b.wake(ctx, settled)
		b.release(ctx, settled)
	}
	return nil
}
