package httpapi_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"testing"
	"testing/synctest"

	"motorpool/httpapi"
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

func TestReadinessNamesWhatIsNotReady(t *testing.T) {
	var err error
	h := httpapi.Internal(
		httpapi.Check{Name: "postgres", Ready: func(context.Context) error { return nil }},
		httpapi.Check{Name: "mqtt", Ready: func(context.Context) error { return err }},
	)
	if status, body := ask(t, h, "/readyz"); status != 200 || body["status"] != "ready" {
		t.Errorf("%d %v", status, body)
	}
	err = errors.New("not connected")
	status, body := ask(t, h, "/readyz")
	if want := map[string]any{"postgres": "ok", "mqtt": "not connected"}; status != 503 || body["status"] != "not_ready" || !reflect.DeepEqual(body["checks"], want) {
		t.Errorf("%d %v", status, body)
	}
	if status, body := ask(t, h, "/healthz"); status != 200 || body["status"] != "ok" {
		t.Errorf("%d %v", status, body)
	}
}

func TestACheckThatHangsIsNotReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := httpapi.Internal(httpapi.Check{Name: "postgres", Ready: func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		}})
		if status, body := ask(t, h, "/readyz"); status != 503 {
			t.Errorf("%d %v", status, body)
		}
	})
}
