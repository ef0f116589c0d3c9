package health_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/guard"
	"motorpool/httpapi/health"
	"motorpool/internal/metricstest"
)

func ask(t *testing.T, h http.Handler, path string) (int, map[string]any) {
	t.Helper()
	recorded := httptest.NewRecorder()
	h.ServeHTTP(recorded, httptest.NewRequest(http.MethodGet, path, nil))
	var body map[string]any
	if err := json.Unmarshal(recorded.Body.Bytes(), &body); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, recorded.Body)
	}
	return recorded.Code, body
}

func TestReadiness_NamesTheFailedCheck(t *testing.T) {
	var err error
	h := health.New(nil,
		health.Check{Name: "postgres", Ready: func(context.Context) error { return nil }},
		health.Check{Name: "mqtt", Ready: func(context.Context) error { return err }},
	).Internal()
	if status, body := ask(t, h, "/readyz"); status != 200 || body["status"] != "ready" {
		t.Errorf("ready: status %d, body %v", status, body)
	}
	err = errors.New("not connected")
	status, body := ask(t, h, "/readyz")
	if want := map[string]any{
		"postgres": "ok", "mqtt": "not connected",
	}; status != 503 || body["status"] != "not_ready" ||
		!reflect.DeepEqual(body["checks"], want) {
		t.Errorf("not ready: status %d, body %v", status, body)
	}
	if status, body := ask(t, h, "/healthz"); status != 200 || body["status"] != "ok" {
		t.Errorf("healthz while not ready: status %d, body %v", status, body)
	}
}

func TestReadiness_FailedOptionalCheckIsOnlyShown(t *testing.T) {
	r := health.New(nil,
		health.Check{Name: "mqtt", Ready: func(context.Context) error { return nil }},
		health.Check{Name: "mqtt_shard_1", Optional: true, Ready: func(context.Context) error { return errors.New("not connected") }},
	)
	for h, text := range map[http.Handler]string{r.Internal(): "not connected", r.Public(): "failed"} {
		status, body := ask(t, h, "/readyz")
		if want := map[string]any{
			"mqtt": "ok", "mqtt_shard_1": text,
		}; status != 200 || body["status"] != "ready" ||
			!reflect.DeepEqual(body["checks"], want) {
			t.Errorf("status %d, body %v; want ready with the checks %v", status, body, want)
		}
	}
}

// A check that ignores its context is left behind, and no second run of it begins.
func TestReadiness_CheckThatNeverEndsDelaysNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		end := make(chan struct{})
		r := health.New(nil,
			health.Check{Name: "postgres", Ready: func(context.Context) error { runs.Add(1); <-end; return nil }},
			health.Check{Name: "redis", Ready: func(context.Context) error { return nil }},
		)
		for range 3 {
			began := time.Now()
			status, body := ask(t, r.Internal(), "/readyz")
			if checks := body["checks"].(map[string]any); status != 503 || checks["redis"] != "ok" ||
				!strings.Contains(checks["postgres"].(string), "not ended within 2 s") {
				t.Errorf("status %d, body %v; want 503 because of postgres alone", status, body)
			}
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("the answer took %v", took)
			}
			time.Sleep(time.Second)
		}
		if n := runs.Load(); n != 1 {
			t.Errorf("the check was begun %d times, want once", n)
		}
		close(end)
		time.Sleep(time.Second)
		if status, body := ask(t, r.Internal(), "/readyz"); status != 200 {
			t.Errorf("after its end: status %d, body %v; want 200", status, body)
		}
	})
}

func TestReadiness_DrainingIsNotReadyAndAlive(t *testing.T) {
	r := health.New(nil, health.Check{Name: "postgres", Ready: func(context.Context) error { return nil }})
	for name, h := range map[string]http.Handler{"internal": r.Internal(), "public": r.Public()} {
		if status, body := ask(t, h, "/readyz"); status != 200 || body["status"] != "ready" {
			t.Errorf("%s before the draining: status %d, body %v", name, status, body)
		}
	}
	r.Drain()
	for name, h := range map[string]http.Handler{"internal": r.Internal(), "public": r.Public()} {
		if status, body := ask(t, h, "/readyz"); status != 503 || body["status"] != "not_ready" || body["reason"] != "draining" {
			t.Errorf("%s while draining: status %d, body %v", name, status, body)
		}
		if status, _ := ask(t, h, "/healthz"); status != 200 {
			t.Errorf("%s while draining: healthz has the status %d, want 200", name, status)
		}
	}
}

func TestReadiness_PublicHandlerNamesNoServersAndLimitsTheChecks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs, err := 0, errors.New("dial tcp db.internal:5432: refused")
		r := health.New(nil, health.Check{Name: "postgres", Ready: func(context.Context) error { runs++; return err }})
		h, registry := r.Public(), prometheus.NewPedanticRegistry()
		registry.MustRegister(r)
		if _, err := metricstest.Gather(registry); err != nil { // probes and scrapes share a run
			t.Fatal(err)
		}
		for range 100 {
			status, body := ask(t, h, "/readyz")
			if want := map[string]any{"postgres": "failed"}; status != 503 || !reflect.DeepEqual(body["checks"], want) {
				t.Fatalf("status %d, body %v; want 503 with the checks %v", status, body, want)
			}
		}
		if runs != 1 {
			t.Errorf("100 probes within a second ran the check %d times, want once", runs)
		}
		time.Sleep(time.Second)
		err = nil
		if status, body := ask(t, h, "/readyz"); status != 200 || runs != 2 {
			t.Errorf("a second later: status %d, body %v after %d runs; want 200 and 2 runs", status, body, runs)
		}
	})
}

func TestReadiness_IsAMetricByCheck(t *testing.T) {
	r := health.New(nil,
		health.Check{Name: "postgres", Ready: func(context.Context) error { return nil }},
		health.Check{Name: "mqtt", Ready: func(context.Context) error { return errors.New("not connected") }},
	)
	r.Drain() // draining does not change the metrics of the checks
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(r)
	values, err := metricstest.Gather(registry)
	if want := (metricstest.Values{`motorpool_ready{check="postgres"}`: 1, `motorpool_ready{check="mqtt"}`: 0}); err != nil ||
		!maps.Equal(values, want) {
		t.Errorf("metrics %v, %v; want %v", values, err, want)
	}
}

func TestReadiness_PanicFailsOneCheckAndTheNextRunTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		h := health.New(guard.New(slog.New(slog.DiscardHandler), nil),
			health.Check{Name: "redis", Ready: func(context.Context) error { return nil }},
			health.Check{Name: "postgres", Ready: func(context.Context) error {
				if runs++; runs == 1 {
					panic("of the test")
				}
				return nil
			}}).Internal()
		status, body := ask(t, h, "/readyz")
		if want := map[string]any{
			"redis": "ok", "postgres": "check postgres: panic: of the test",
		}; status != 503 ||
			!reflect.DeepEqual(body["checks"], want) {
			t.Errorf("status %d, body %v; want 503 with the checks %v", status, body, want)
		}
		time.Sleep(time.Second)
		if status, body := ask(t, h, "/readyz"); status != 200 {
			t.Errorf("status %d, body %v after the panic, want 200", status, body)
		}
	})
}
