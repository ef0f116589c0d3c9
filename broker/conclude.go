package broker

import (
	"context"
	"sync"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// conclude checks, for concludeWithin, whether late reports confirm or contradict commands that
// ended as unknown. All instances do so, and a conditional write lets one of them conclude each
// command.
func (b *Broker) conclude(ctx context.Context) error {
	var last telematics.Command
	return b.each(ctx, concludeEvery, "conclude", func() {
		if b.clock.err() == nil {
			last = b.concludeBatch(ctx, last)
		}
	})
}

// concludeBatch checks the unconfirmed commands after last, and returns the last of them; zero:
// there are no more.
func (b *Broker) concludeBatch(ctx context.Context, last telematics.Command) telematics.Command {
	ctx, cancel := b.step(ctx)
	defer cancel()
	unconfirmed, err := b.Commands.Unconfirmed(ctx, b.recordTime().Add(-concludeWithin), last, concludeBatchSize)
	if err != nil {
		b.Logger.Warn("unconfirmed commands not read, retrying", "err", err)
		return last
	}
	var looking sync.WaitGroup
	for _, c := range unconfirmed {
		looking.Go(func() {
			_ = b.Guard.Do("conclude command", func() { b.concludeOne(ctx, &c) })
		})
	}
	looking.Wait()
	if len(unconfirmed) < concludeBatchSize {
		return telematics.Command{}
	}
	return unconfirmed[len(unconfirmed)-1]
}

func (b *Broker) concludeOne(ctx context.Context, c *telematics.Command) {
	twin, confirmation := b.reported(ctx, c)
	finding := delivery.Settlement{Command: c.ID, At: b.recordTime()}
	switch {
	case twin.Snapshot.Confirms(confirmation, c.SentAt):
		finding.State = telematics.Succeeded
	case twin.Snapshot.Contradicts(confirmation, c.DoneBy()):
		finding.State = telematics.Unknown
	default:
		return
	}
	concluded, ok, err := b.Commands.Conclude(ctx, finding)
	switch {
	case err != nil:
		b.Logger.WarnContext(ctx, "unconfirmed command not concluded, retrying", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "err", err)
	case !ok: // by another instance, or a later command is there
	case concluded.Contradicted:
		b.metrics.commandsContradicted.Inc()
		b.Logger.InfoContext(ctx, "a report contradicts a command", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "action", c.Action)
	default:
		b.metrics.commandsConfirmedLate.Inc()
		b.Logger.InfoContext(ctx, "late report settled a command", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "action", c.Action)
	}
}
