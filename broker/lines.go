package broker

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"motorpool/telematics"
)

const (
	// maxOwedLines bounds the lines that the history could not take. It is offered them again, while this process
	// lives [LAW-9]; a line whose writing was only believed to have failed may then be there twice, which misleads
	// less than one that is missing.
	maxOwedLines = 4096
	lineOwedFor  = 10 * time.Minute
)

// Note adds a line to the history, now or as soon as it takes it.
func (b *Broker) Note(ctx context.Context, line telematics.Activity) {
	ctx, cancel := b.step(ctx)
	defer cancel()
	err := b.History.Add(ctx, line)
	if err == nil {
		return
	}
	if b.owedLines.add(line) == 0 {
		b.logLost(line, err)
		return
	}
	b.Logger.Debug("the history is owed a line", "vehicle", line.Vehicle, "action", line.Action, "request_id", line.RequestID, "err", err)
}

// Omit counts a line that is not added to the history, because its actor was refused too often.
func (b *Broker) Omit(ctx context.Context, line telematics.Activity) {
	b.metrics.refusalsNotRecorded.Inc()
	b.Logger.DebugContext(ctx, "refusal not recorded", "actor", line.Actor.Subject, "agency", line.Actor.Agency, "action", line.Action,
		"code", line.Code, "request_id", line.RequestID)
}

// payOwedLines offers the lines to the history again.
func (b *Broker) payOwedLines(ctx context.Context) {
	lines := b.owedLines.take()
	if len(lines) == 0 {
		return
	}
	ctx, cancel := b.step(ctx)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(sweepBatch) // they share statements
	for _, line := range lines {
		group.Go(func() error {
			err := b.History.Add(ctx, line)
			if err != nil && (b.isOld(line) || b.owedLines.add(line) == 0) {
				b.logLost(line, err)
			}
			return nil
		})
	}
	_ = group.Wait()
}

// isOld reports whether a line is not to be offered any more. Lines are dated by this instance's clock, or by that clock corrected.
func (b *Broker) isOld(line telematics.Activity) bool {
	return b.now().Sub(line.At) > lineOwedFor && b.recordTime().Sub(line.At) > lineOwedFor
}

// settleDebts pays what can be paid before the end, and logs what cannot.
func (b *Broker) settleDebts(ctx context.Context) {
	b.payOwed(ctx)
	b.payOwedLines(ctx)
	for _, line := range b.owedLines.take() {
		b.logLost(line, context.Canceled)
	}
}

func (b *Broker) logLost(line telematics.Activity, err error) {
	b.Logger.Error("line missing from the history", "vehicle", line.Vehicle, "action", line.Action,
		"code", line.Code, "request_id", line.RequestID, "err", err)
}
