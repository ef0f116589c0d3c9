package broker

import (
	"context"
	"strconv"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
	"motorpool/tracing"
)

// Attributes of spans.
const (
	attempt       = "motorpool.attempt"
	unitTime      = "motorpool.unit.time"           // by the unit's own clock
	unitReturned  = "motorpool.unit.returned_trace" // the answer has the command's traceparent
	unitReason    = "motorpool.unit.reason"
	commandID     = "motorpool.command"
	commandAction = "motorpool.action"
	commandState  = "motorpool.state"
	vehicleID     = "motorpool.vehicle"
)

// describe adds the attributes of a command, as far as known, to its span.
func describe(span tracing.Span, order *delivery.Order, c *telematics.Command, err *telematics.Error) {
	if !span.IsRecording() {
		return
	}
	span.Set(tracing.String(vehicleID, strconv.FormatInt(int64(order.Vehicle), 10)), tracing.String(commandAction, string(order.Action)))
	if c != nil {
		span.Set(tracing.String(commandID, c.ID.String()), tracing.String(commandState, string(c.State)))
	}
	if err != nil {
		span.Fail(string(err.Code))
	}
}

// joinTrace returns a context in the trace of the command that a unit answers: that of its waiter,
// or, without one, the trace that the unit returns. It reports whether the command's span is here.
func (b *Broker) joinTrace(ctx context.Context, a telematics.Answer, w *waiter) (joined context.Context, here bool) {
	if w != nil && w.span.IsRecording() {
		return w.span.In(ctx), true
	}
	joined, _ = b.config.Tracer.Join(ctx, a.Trace)
	return joined, false
}

// traceAnswer adds the unit's part to the trace of its command: from the publication, where this
// instance has published the command, until the answer arrived.
func (b *Broker) traceAnswer(ctx context.Context, a telematics.Answer, sent, at time.Time) {
	span := tracing.Traceparent(ctx)
	if span == "" {
		return
	}
	if sent.IsZero() || sent.After(at) {
		sent = at
	}
	returned := strconv.FormatBool(a.Trace == span)
	b.config.Tracer.Record(ctx, delivery.SpanUnit+string(a.State), sent, at,
		tracing.String(unitTime, telematics.FormatTime(a.At)), tracing.String(unitReason, a.Reason), tracing.String(unitReturned, returned))
}

// requestOf returns the id of the request that ordered a command, for a log message; nil where this
// instance does not know the command.
func requestOf(c *telematics.Command) any {
	if c == nil {
		return nil
	}
	return c.RequestID
}
