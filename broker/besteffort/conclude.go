package besteffort

import (
	"context"
	"sync"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Conclude checks whether late reports confirm or contradict commands that ended as unknown within
// concludeWithin: the next batch of them. All instances do so, and a conditional write lets one of
// them conclude each command. It is not safe for concurrent use.
func (h *Handler) Conclude(ctx context.Context) {
	ctx, cancel := h.step(ctx)
	defer cancel()
	unconfirmed, err := h.Commands.Unconfirmed(ctx, h.Now().Add(-concludeWithin), h.last, concludeBatchSize)
	if h.outage.Note(ctx, h.Logger, "unconfirmed commands not read", err); err != nil {
		return
	}
	var looking sync.WaitGroup
	for _, c := range unconfirmed {
		looking.Go(func() {
			_ = h.Guard.Do("conclude command", func() { h.conclude(ctx, &c) })
		})
	}
	looking.Wait()
	h.last = telematics.Command{}
	if len(unconfirmed) == concludeBatchSize {
		h.last = unconfirmed[len(unconfirmed)-1]
	}
}

func (h *Handler) conclude(ctx context.Context, c *telematics.Command) {
	reported, confirmation := h.reported(ctx, c)
	finding := delivery.Settlement{Command: c.ID, At: h.Now()}
	switch {
	case confirms(reported, confirmation, c.SentAt):
		finding.State = telematics.Succeeded
	case contradicts(reported, confirmation, c.DoneBy()):
		finding.State = telematics.Unknown
	default:
		return
	}
	concluded, ok, err := h.Commands.Conclude(ctx, finding)
	if err != nil {
		h.Logger.WarnContext(
			ctx, "unconfirmed command not concluded, retrying", "command", c.ID, "request_id", c.RequestID,
			"vehicle", c.Vehicle, "err", err,
		)
	}
	if err != nil || !ok { // by another instance, or a later command is there
		return
	}
	h.Changed(concluded.Event(finding.At))
	about := []any{"command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "action", c.Action}
	if concluded.BestEffort.Contradicted {
		h.contradicted.Inc()
		h.Logger.InfoContext(ctx, "a report contradicts a command", about...)
		return
	}
	h.confirmedLate.Inc()
	h.Logger.InfoContext(ctx, "late report settled a command", about...)
}
