package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"

	"motorpool/tracing"
)

// flushBudget bounds the wait for the collector at the end of the service.
const flushBudget = 5 * time.Second

func (c Config) checkOTLP() error {
	if c.OTLPURL == "" {
		return nil
	}
	if err := serverURL("otlp-url", c.OTLPURL, "http", "https"); err != nil {
		return err
	}
	if u, err := url.Parse(c.OTLPURL); err != nil || u.User != nil || u.RawQuery != "" {
		return errors.New(
			"--otlp-url: want no password and no query in it; set OTEL_EXPORTER_OTLP_HEADERS, such as Authorization=Bearer%20…",
		)
	}
	return nil
}

// newTracer returns a tracer that sends spans to the collector of the settings, and a function that
// sends the last ones. Without a collector both do nothing.
func (c Config) newTracer(instance string, log *slog.Logger) (*tracing.Tracer, func(), error) {
	if c.OTLPURL == "" {
		return nil, func() {}, nil
	}
	address, err := url.Parse(c.OTLPURL)
	if err != nil {
		return nil, nil, fmt.Errorf("--otlp-url: %w", err)
	}
	if address.Path == "" || address.Path == "/" {
		address.Path = "/v1/traces" // where collectors take traces
	}
	client, err := otlptracehttp.New(context.Background(), otlptracehttp.WithEndpointURL(address.String()))
	if err != nil {
		return nil, nil, fmt.Errorf("--otlp-url: %w", err)
	}
	provider := trace.NewTracerProvider(
		trace.WithBatcher(&loggedExporter{SpanExporter: client, log: log}),
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "motorpool"),
			attribute.String("service.version", cmp.Or(c.Version, "dev")),
			attribute.String("service.instance.id", instance),
		)))
	flush := func() {
		ctx, cancel := context.WithTimeout(context.Background(), flushBudget)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("last spans not sent to the trace collector", "err", err)
		}
	}
	return tracing.New(provider), flush, nil
}

// loggedExporter logs when the collector becomes unavailable, and when it is available again. Spans
// that it does not take are lost: they delay nothing.
type loggedExporter struct {
	trace.SpanExporter
	log  *slog.Logger
	lost atomic.Int64 // spans, since it became unavailable
}

// ExportSpans implements trace.SpanExporter.
func (e *loggedExporter) ExportSpans(ctx context.Context, spans []trace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		if lost := e.lost.Swap(0); lost > 0 {
			e.log.Info("trace collector available again", "spans_lost", lost)
		}
		return nil
	}
	if e.lost.Add(int64(len(spans))) == int64(len(spans)) {
		e.log.Warn("trace collector unavailable, spans are lost", "err", err)
	}
	return nil // the library would write it to standard error
}
