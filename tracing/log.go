package tracing

import (
	"context"
	"log/slog"
)

// The keys of log lines by which those of one request are found.
const (
	RequestKey = "request_id"
	TraceKey   = "trace_id"
)

type requestKey struct{}

// WithRequest returns a context for what is done for a request.
func WithRequest(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, requestKey{}, id)
}

// LogHandler returns a handler that adds to each line the request and the trace of its context,
// where the line does not have them itself.
func LogHandler(h slog.Handler) slog.Handler { return correlating{h} }

type correlating struct{ slog.Handler }

func (c correlating) Handle(ctx context.Context, r slog.Record) error {
	request, _ := ctx.Value(requestKey{}).(string)
	trace := TraceID(ctx)
	if request == "" && trace == "" {
		return c.Handler.Handle(ctx, r)
	}
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == RequestKey {
			request = ""
		}
		return true
	})
	r = r.Clone()
	if request != "" {
		r.AddAttrs(slog.String(RequestKey, request))
	}
	if trace != "" {
		r.AddAttrs(slog.String(TraceKey, trace))
	}
	return c.Handler.Handle(ctx, r)
}

func (c correlating) WithAttrs(attrs []slog.Attr) slog.Handler {
	return correlating{c.Handler.WithAttrs(attrs)}
}

func (c correlating) WithGroup(name string) slog.Handler {
	return correlating{c.Handler.WithGroup(name)}
}
