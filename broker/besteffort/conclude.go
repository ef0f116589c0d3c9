package besteffort

import (
	"context"
	"sync"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// Run checks, for concludeWithin, whether late reports confirm or contradict commands that ended as
// unknown. All instances do so, and a conditional write lets one of them conclude each command. It
// blocks until the context ends, and returns its error.
func (h *Handler) Run(ctx context.Context) error {
	tick := time.NewTicker(concludeEvery)
	defer tick.Stop()
	var last telematics.Command
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if h.WrongClock() == nil {
			_ = h.Guard.Do("conclude", func() { last = h.concludeBatch(ctx, last) })
		}
	}
}

// concludeBatch checks the unconfirmed commands after last, and returns the last of them; zero:
// there are no more.
func (h *Handler) concludeBatch(ctx context.Context, last telematics.Command) telematics.Command {
	ctx, cancel := h.step(ctx)
	defer cancel()
	unconfirmed, err := h.Commands.Unconfirmed(ctx, h.Now().Add(-concludeWithin), last, concludeBatchSize)
	if err != nil {
		h.Logger.Warn("unconfirmed commands not read, retrying", "err", err)
		return last
	}
	var looking sync.WaitGroup
	for _, c := range unconfirmed {
		looking.Go(func() {
			_ = h.Guard.Do("conclude command", func() { h.conclude(ctx, &c) })
		})
	}
	looking.Wait()
	if len(unconfirmed) < concludeBatchSize {
		return telematics.Command{}
	}
	return unconfirmed[len(unconfirmed)-1]
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
		h.Logger.WarnContext(ctx, "unconfirmed command not concluded, retrying", "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "err", err)
	}
	if err != nil || !ok { // by another instance, or a later command is there
		return
	}
	h.Changed(concluded.Event(finding.At))
	counter, what := h.confirmedLate, "late report settled a command"
	if concluded.BestEffort.Contradicted {
		counter, what = h.contradicted, "a report contradicts a command"
	}
	counter.Inc()
	h.Logger.InfoContext(ctx, what, "command", c.ID, "request_id", c.RequestID, "vehicle", c.Vehicle, "action", c.Action)
}
