// Package tracing correlates what one request does: the spans of its OpenTelemetry trace, the
// regions of Go's execution trace, and its log lines.
//
// A trace begins with a Tracer; everything else finds it in the context. A step whose context has
// no trace costs no allocation.
package tracing

import (
	"context"
	"net/http"
	runtimetrace "runtime/trace"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// scope names this library in every span.
const scope = "motorpool"

// Tracer begins traces, and joins those that other processes have begun. Nil does neither. It is
// safe for concurrent use.
type Tracer struct{ tracer trace.Tracer }

// New returns a tracer whose spans a provider processes.
func New(p trace.TracerProvider) *Tracer { return &Tracer{tracer: p.Tracer(scope)} }

// Request begins the span of a request, in the trace of its caller if the header traceparent names
// one (W3C Trace Context). Whether it is recorded is decided as for a trace that begins here: any
// caller can send the header. End the span.
func (t *Tracer) Request(ctx context.Context, h http.Header, name string) (context.Context, Span) {
	if t == nil {
		// A dozen steps look for a span, and would search the contexts of net/http, too.
		return trace.ContextWithSpan(ctx, noop.Span{}), Span{}
	}
	if parent, ok := parse(h.Get("Traceparent")); ok {
		_, own := t.tracer.Start(context.Background(), name) // only for its decision: it never ends
		if !own.SpanContext().IsSampled() {
			return trace.ContextWithSpan(ctx, noop.Span{}), Span{}
		}
		ctx = trace.ContextWithRemoteSpanContext(ctx, parent.WithTraceFlags(trace.FlagsSampled))
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(trace.SpanKindServer))
	return ctx, Span{span: span}
}

// Join returns a context whose spans are children of another process's span, which a traceparent
// names. It returns false if there is no such span, or its trace is not recorded.
func (t *Tracer) Join(ctx context.Context, traceparent string) (context.Context, bool) {
	if t == nil || traceparent == "" {
		return ctx, false
	}
	parent, ok := parse(traceparent)
	if !ok || !parent.IsSampled() {
		return ctx, false
	}
	return trace.ContextWithRemoteSpanContext(ctx, parent), true
}

// Record adds a span that is over, as a child of the one in the context: of this process, or of
// another one that Join has named.
func (t *Tracer) Record(ctx context.Context, name string, from, until time.Time, attributes ...attribute.KeyValue) {
	if t == nil || !trace.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	_, span := t.tracer.Start(ctx, name, trace.WithTimestamp(from), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(until))
}

// Span is something that takes time. The zero value records nothing.
type Span struct {
	span   trace.Span
	region *runtimetrace.Region
}

// Start begins a span, as a child of the one in the context, which it returns in a new context.
// Without one it returns the same context.
func Start(ctx context.Context, name string) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(scope).Start(ctx, name)
	return ctx, Span{span: span}
}

// Step begins a step of a command or a request: a child of the span in the context, and a region of
// Go's execution trace. End it in the same goroutine.
func Step(ctx context.Context, name string) Span {
	region := runtimetrace.StartRegion(ctx, name)
	_, span := Start(ctx, name)
	span.region = region
	return span
}

// Detach returns a context for work that goes on after its caller has left: it does not end with
// ctx, and has the same span, or says that there is none. Each step finds that there, and does not
// search the contexts above.
func Detach(ctx context.Context) context.Context {
	return trace.ContextWithSpan(context.WithoutCancel(ctx), trace.SpanFromContext(ctx))
}

// SpanOf returns the span in the context.
func SpanOf(ctx context.Context) Span {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		return Span{span: span}
	}
	return Span{}
}

// In returns a context in which steps are children of the span.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// End ends the span.
func (s Span) End() {
	if s.region != nil {
		s.region.End()
	}
	if s.span != nil {
		s.span.End()
	}
}

// IsRecording reports whether attributes of the span are recorded.
func (s Span) IsRecording() bool { return s.span != nil && s.span.IsRecording() }

// Rename changes the name of the span.
func (s Span) Rename(name string) {
	if s.span != nil {
		s.span.SetName(name)
	}
}

// Set adds attributes. Check IsRecording first if they are expensive to make.
func (s Span) Set(attributes ...attribute.KeyValue) {
	if s.span != nil {
		s.span.SetAttributes(attributes...)
	}
}

// Fail marks the span as failed, for a reason of few values, such as an error's code.
func (s Span) Fail(reason string) {
	if s.span != nil {
		s.span.SetStatus(codes.Error, reason)
	}
}

// String and Int make attributes.
var (
	String = attribute.String
	Int    = attribute.Int
)

// Traceparent returns the span in the context as a traceparent, for other processes; empty: nothing
// is recorded.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsSampled() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier["traceparent"]
}

// traceID returns the id of the trace in the context; empty: there is none.
func traceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

// parse reads a traceparent.
func parse(traceparent string) (trace.SpanContext, bool) {
	if strings.Count(traceparent, "-") < 3 {
		return trace.SpanContext{}, false
	}
	ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.MapCarrier{"traceparent": traceparent})
	c := trace.SpanContextFromContext(ctx)
	return c, c.IsValid()
}
