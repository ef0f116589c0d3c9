package service_test

import (
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"motorpool/internal/app"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

// spanCollector receives traces over OTLP/HTTP.
type spanCollector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []collectedSpan
}

type collectedSpan struct {
	*otlp.Span
	instance string
}

func newSpanCollector(s *stack) *spanCollector {
	c := &spanCollector{}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var batch collector.ExportTraceServiceRequest
		if err == nil {
			err = proto.Unmarshal(body, &batch)
		}
		if err != nil || r.URL.Path != "/v1/traces" {
			s.Errorf("%s: %v", r.URL, err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range batch.ResourceSpans {
			instance := attribute(of.Resource.Attributes, "service.instance.id")
			for _, scope := range of.ScopeSpans {
				for _, span := range scope.Spans {
					c.spans = append(c.spans, collectedSpan{span, instance})
				}
			}
		}
	}))
	s.Cleanup(c.Close)
	return c
}

func attribute(attributes []*common.KeyValue, key string) string {
	for _, a := range attributes {
		if a.Key != key {
			continue
		}
		if n, ok := a.Value.Value.(*common.AnyValue_IntValue); ok {
			return fmt.Sprint(n.IntValue)
		}
		return a.Value.GetStringValue()
	}
	return ""
}

// trace returns the spans of a trace, in the order of their start.
func (c *spanCollector) trace(id string) (found []collectedSpan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, span := range c.spans {
		if hex.EncodeToString(span.TraceId) == id {
			found = append(found, span)
		}
	}
	slices.SortStableFunc(found, func(a, b collectedSpan) int { return int(a.StartTimeUnixNano) - int(b.StartTimeUnixNano) })
	return found
}

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e47"
	callersSpan  = "00f067aa0ba902b7"
)

// tracedParents maps each span of an executed command to its parent.
var tracedParents = map[string]string{
	"POST /api/v1/admin/vehicles/:vehicle/control/lock": "",
	delivery.StepAdmit:              "POST /api/v1/admin/vehicles/:vehicle/control/lock",
	delivery.SpanCommand:            "POST /api/v1/admin/vehicles/:vehicle/control/lock",
	delivery.StepAnswer:             "POST /api/v1/admin/vehicles/:vehicle/control/lock",
	delivery.StepLookUp:             delivery.SpanCommand,
	delivery.StepClaim:              delivery.SpanCommand,
	delivery.StepSign:               delivery.SpanCommand,
	delivery.StepRegister:           delivery.SpanCommand,
	delivery.StepPublish:            delivery.SpanCommand,
	delivery.StepAwait:              delivery.SpanCommand,
	delivery.SpanUnit + "received":  delivery.SpanCommand,
	delivery.SpanUnit + "succeeded": delivery.SpanCommand,
	delivery.StepSettle:             delivery.SpanCommand,
}

func TestTrace_OfOneCommandHasEachStepUnderItsParent(t *testing.T) {
	t.Parallel()
	s := realStack(t, 1)
	spans := newSpanCollector(s)
	traced := func(c *app.Config) { c.VehicleRate, c.AdminRate, c.OTLPURL = 0, 0, spans.URL }
	i := s.serve(traced)
	s.drive(nil, healthy)
	lock := func(n int) string {
		t.Helper()
		id := fmt.Sprintf("%s%02x", callersTrace, n)
		i.control(1, telematics.Lock, "Traceparent", "00-"+id+"-"+callersSpan+"-01").wants(http.StatusOK)
		return id
	}
	lock(0) // afterwards the reads from Postgres are cached
	one := lock(1)
	var others []string
	second := s.serve(traced)
	for n := range 20 { // the second instance gets some of the answers
		others = append(others, lock(n+2))
	}
	second.stop()
	i.stop() // the instances send their last spans

	first := spans.trace(one)
	checkTrace(t, first)
	if unreturned(first) > 0 {
		t.Error("an answer of the unit has no trace")
	}
	if !slices.ContainsFunc(others, func(id string) bool {
		found := spans.trace(id)
		checkTrace(t, found)
		settled := slices.IndexFunc(found, func(span collectedSpan) bool { return span.Name == delivery.StepSettle })
		return settled >= 0 && found[settled].instance != found[0].instance
	}) {
		t.Fatal("the second instance settled none of 20 commands")
	}
}

// unreturned counts the answers of the unit without the trace.
func unreturned(spans []collectedSpan) (n int) {
	for _, span := range spans {
		if strings.HasPrefix(span.Name, delivery.SpanUnit) && attribute(span.Attributes, "motorpool.unit.returned_trace") != "true" {
			n++
		}
	}
	return n
}

// checkTrace compares a trace with tracedParents.
func checkTrace(t *testing.T, spans []collectedSpan) {
	t.Helper()
	names, count := map[string]string{callersSpan: ""}, map[string]int{}
	for _, span := range spans {
		names[hex.EncodeToString(span.SpanId)] = span.Name
		count[span.Name]++
	}
	for _, span := range spans {
		want, known := tracedParents[span.Name]
		if span.Name == delivery.StepReport { // where only the waiter has a span
			want, known = delivery.SpanCommand, true
		}
		if got, ok := names[hex.EncodeToString(span.ParentSpanId)]; !known || !ok || got != want {
			t.Errorf("the parent of %q is %q, want %q", span.Name, got, want)
		}
	}
	// With two instances a report may arrive before an answer. It has the same result, but no
	// trace.
	if n := unreturned(spans); n > 1 {
		t.Errorf("%d answers of the unit have no trace, want at most 1", n)
	}
	for name := range tracedParents {
		if count[name] == 0 && name != delivery.SpanUnit+"received" {
			t.Errorf("the trace has no span %q", name)
		}
	}
	if t.Failed() {
		t.Fatalf("the spans of the trace: %v", count)
	}
}
