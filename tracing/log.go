package tracing

import (
	"context"
	"log/slog"
)

// The keys of log attributes by which the messages of one request are found.
const (
	RequestKey = "request_id"
	traceKey   = "trace_id"
)

type requestKey struct{}

// WithRequest returns a context that carries the id of a request, for LogHandler.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// LogHandler returns a handler that adds the request and the trace of its context to each message,
// unless the message or its logger has them already.
func LogHandler(h slog.Handler) slog.Handler { return &correlating{Handler: h} }

type correlating struct {
	slog.Handler
	has ids // of the logger's own attributes
}

// ids is which of the keys are present.
type ids struct{ request, trace bool }

func (has *ids) note(a slog.Attr) {
	has.request = has.request || a.Key == RequestKey
	has.trace = has.trace || a.Key == traceKey
}

func (c *correlating) Handle(ctx context.Context, r slog.Record) error {
	request, _ := ctx.Value(requestKey{}).(string)
	trace := traceID(ctx)
	has := c.has
	has.request, has.trace = has.request || request == "", has.trace || trace == ""
	r.Attrs(func(a slog.Attr) bool {
		has.note(a)
		return true
	})
	if has.request && has.trace {
		return c.Handler.Handle(ctx, r)
	}
	r = r.Clone()
	if !has.request {
		r.AddAttrs(slog.String(RequestKey, request))
	}
	if !has.trace {
		r.AddAttrs(slog.String(traceKey, trace))
	}
	return c.Handler.Handle(ctx, r)
}

func (c *correlating) WithAttrs(attrs []slog.Attr) slog.Handler {
	has := c.has
	for _, a := range attrs {
		has.note(a)
	}
	return &correlating{c.Handler.WithAttrs(attrs), has}
}

func (c *correlating) WithGroup(name string) slog.Handler {
	return &correlating{Handler: c.Handler.WithGroup(name)} // in which there is none yet
}
