package tracing_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"motorpool/tracing"
)

func TestLogHandler_NamesTheRequestOnce(t *testing.T) {
	tracer, _ := recorded()
	ctx, span := tracer.Request(tracing.WithRequest(t.Context(), "r-1"), request(caller), "POST")
	defer span.End()
	for name, write := range map[string]func(context.Context, *slog.Logger){
		"from the context": func(ctx context.Context, log *slog.Logger) { log.InfoContext(ctx, "x") },
		"as an attribute of the record": func(ctx context.Context,
			log *slog.Logger) {
			log.InfoContext(ctx, "x", tracing.RequestKey, "r-1")
		},
		"as an attribute of the logger": func(ctx context.Context,
			log *slog.Logger) {
			log.With(tracing.RequestKey, "r-1").InfoContext(ctx, "x")
		},
		"with a trace": func(ctx context.Context, log *slog.Logger) {
			log.With("trace_id", "4bf92f3577b34da6a3ce929d0e0e4736").InfoContext(ctx, "x")
		},
	} {
		var text bytes.Buffer
		write(ctx, slog.New(tracing.LogHandler(slog.NewJSONHandler(&text, nil))))
		for _, key := range []string{`"request_id":"r-1"`, `"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"`} {
			if n := strings.Count(text.String(), key); n != 1 {
				t.Errorf("%s: %s occurs %d times, want once: %s", name, key, n, &text)
			}
		}
	}
	var text bytes.Buffer
	slog.New(tracing.LogHandler(slog.NewJSONHandler(&text, nil))).InfoContext(t.Context(), "x")
	if strings.Contains(text.String(), "_id") {
		t.Errorf("outside a request the log has an id: %s", &text)
	}
}
