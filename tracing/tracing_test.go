package tracing_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"motorpool/tracing"
)

const (
	caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	// The caller does not record its trace.
	unasked = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00"
)

func recorded() (*tracing.Tracer, *tracetest.SpanRecorder) {
	spans := tracetest.NewSpanRecorder()
	return tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))), spans
}

func request(traceparent string) http.Header {
	return http.Header{"Traceparent": {traceparent}}
}

func TestRequest_JoinsTheTraceOfItsCaller(t *testing.T) {
	tracer, spans := recorded()
	ctx, span := tracer.Request(t.Context(), request(caller), "POST")
	step := tracing.Step(ctx, "claim")
	step.End()
	span.Rename("POST /lock")
	span.End()
	ended := spans.Ended()
	if len(ended) != 2 || ended[0].Name() != "claim" || ended[1].Name() != "POST /lock" {
		t.Fatalf("spans %v, want claim and POST /lock", ended)
	}
	if got := ended[1].Parent().SpanID().String(); got != "00f067aa0ba902b7" {
		t.Errorf("the parent of the request is %s, want that of the caller", got)
	}
	if ended[0].Parent().SpanID() != ended[1].SpanContext().SpanID() ||
		ended[0].SpanContext().TraceID().String() != "4bf92f3577b34da6a3ce929d0e0e4736" {
		t.Errorf("the step is not in the span of the request: %v", ended[0].Parent())
	}
}

func TestRequest_OnlyTheSamplerDecidesWhatIsRecorded(t *testing.T) {
	for name, c := range map[string]struct {
		sampler sdk.Sampler
		spans   int
	}{
		"all":                        {sdk.ParentBased(sdk.AlwaysSample()), 2},
		"none":                       {sdk.ParentBased(sdk.NeverSample()), 0},
		"none, by the trace's id":    {sdk.ParentBased(sdk.TraceIDRatioBased(0)), 0},
		"none, whatever the parent":  {sdk.TraceIDRatioBased(0), 0},
		"all, without a parent rule": {sdk.AlwaysSample(), 2},
	} {
		for _, header := range []string{caller, unasked, ""} {
			spans := tracetest.NewSpanRecorder()
			tracer := tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans), sdk.WithSampler(c.sampler)))
			ctx, span := tracer.Request(t.Context(), request(header), "POST")
			tracing.Step(ctx, "claim").End()
			span.End()
			if got := tracing.Traceparent(ctx); len(spans.Ended()) != c.spans || (got != "") != (c.spans > 0) {
				t.Errorf("sampler %s, header %q: %d spans with the traceparent %q, want %d", name, header, len(spans.Ended()), got, c.spans)
			}
		}
	}
}

func TestRequest_StartsATraceWithoutAValidTraceparent(t *testing.T) {
	for _, header := range []string{"", "hello", "00-0-0-0", strings.Repeat("-", 1000)} {
		tracer, spans := recorded()
		ctx, span := tracer.Request(t.Context(), request(header), "POST")
		span.End()
		if ended := spans.Ended(); len(ended) != 1 || ended[0].Parent().IsValid() || tracing.Traceparent(ctx) == "" {
			t.Errorf("header %.20q: spans %v, want one without a parent", header, ended)
		}
	}
}

func TestJoin_RecordsSpansUnderASpanOfAnotherProcess(t *testing.T) {
	tracer, spans := recorded()
	ctx, ok := tracer.Join(t.Context(), caller)
	if !ok || tracing.Traceparent(ctx) != caller {
		t.Fatalf("joined %t, traceparent %q", ok, tracing.Traceparent(ctx))
	}
	now := time.Now()
	tracer.Record(ctx, "settle", now.Add(-time.Second), now)
	if ended := spans.Ended(); len(ended) != 1 || ended[0].Parent().SpanID().String() != "00f067aa0ba902b7" ||
		ended[0].EndTime().Sub(ended[0].StartTime()) != time.Second {
		t.Errorf("spans %v, want one of a second with the caller as parent", ended)
	}
	for _, no := range []string{"", "x", unasked} {
		if _, ok := tracer.Join(t.Context(), no); ok {
			t.Errorf("joined the invalid traceparent %q", no)
		}
	}
}

// off does everything that a command does, with traces turned off.
func off(ctx context.Context, none *tracing.Tracer, h http.Header) {
	ctx, span := none.Request(ctx, h, "POST")
	ctx, command := tracing.Start(tracing.Detach(ctx), "command")
	for range 8 {
		tracing.Step(ctx, "claim").End()
	}
	if tracing.Traceparent(ctx) != "" || command.IsRecording() {
		panic("a trace was started although traces are off")
	}
	if _, ok := none.Join(ctx, ""); ok {
		panic("joined")
	}
	none.Record(ctx, "unit", time.Time{}, time.Time{})
	command.End()
	span.End()
}

func TestStep_AllocatesNothingWhileTracesAreOff(t *testing.T) {
	ctx, h := t.Context(), request(caller)
	if n := testing.AllocsPerRun(100, func() { off(ctx, nil, h) }); n != 3 {
		t.Errorf("%v allocations, want three: the context of the request, and two of Detach", n)
	}
}

func TestDetach_KeepsTheSpanAndDoesNotEnd(t *testing.T) {
	tracer, spans := recorded()
	calling, leave := context.WithCancel(t.Context())
	ctx, span := tracer.Request(calling, request(caller), "POST")
	ctx = tracing.Detach(ctx)
	leave()
	tracing.Step(ctx, "claim").End()
	span.End()
	ended := spans.Ended()
	if ctx.Err() != nil || len(ended) != 2 || ended[0].Parent().SpanID() != ended[1].SpanContext().SpanID() {
		t.Errorf("the context has ended (%v), or the step is not in the span of the request: %v", ctx.Err(), ended)
	}
}
