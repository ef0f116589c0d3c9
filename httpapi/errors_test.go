package httpapi_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/httpapi"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

const lock = "/api/v1/admin/vehicles/42/control/lock"

func TestErrors_EachResultOfACommandHasItsAnswer(t *testing.T) {
	occupant := telematics.Command{ID: uuid.New(), Action: telematics.Unlock, Deadline: now.Add(6400 * time.Millisecond)}
	ended := func(s telematics.State, reason, detail string) func(delivery.Order) error {
		return func(o delivery.Order) error {
			c := settled(o, s)
			c.Reason, c.Detail = reason, detail
			return c.Err()
		}
	}
	refused := func(err *telematics.Error) func(delivery.Order) error {
		return func(delivery.Order) error { return err }
	}
	for name, c := range map[string]struct {
		end        func(delivery.Order) error
		status     int
		code       string
		retryable  bool
		retryAfter string
		outcome    string
		reason     string
		detail     string
		command    bool
	}{
		"unknown vehicle": {refused(telematics.NoSuchVehicle(42)), 404, "vehicle_not_found", false, "", "", "", "", false},
		"no unit":         {refused(telematics.NoUnit()), 409, "vehicle_has_no_unit", false, "3600", "not_executed", "", "", false},
		"action not on record": {refused(telematics.NotSupported(telematics.Lock)), 409, "command_not_supported", false, "3600",
			"not_executed", "unsupported", "", false},
		"action rejected by unit": {ended(telematics.Rejected, "unsupported", ""), 409, "command_not_supported", false, "3600",
			"not_executed", "unsupported", "", true},
		"best effort denied": {refused(telematics.BestEffortDenied(telematics.Unlock)), 409, "best_effort_denied", false, "3600",
			"not_executed", "", "", false},
		"moving": {refused(telematics.Conflict(telematics.Lock, "moving")), 409, "vehicle_state_conflict", true, "30",
			"not_executed", "state_conflict", "moving", false},
		"door open": {ended(telematics.Rejected, "state_conflict", "door_open"), 409, "vehicle_state_conflict", true,
			"30", "not_executed", "state_conflict", "door_open", true},
		"command in progress": {refused(telematics.InProgress(&occupant, now)), 409, "command_in_progress", true, "7",
			"not_executed", "", "", true},
		"offline": {refused(telematics.UnitOffline(telematics.Contact{Status: telematics.Offline}, now)), 503,
			"vehicle_offline", true, "30", "not_executed", "", "", false},
		"MQTT unavailable": {refused(telematics.Unavailable("MQTT", errors.New("x"))), 503, "telematics_unavailable", true, "5",
			"not_executed", "", "", false},
		"never published": {ended(telematics.Expired, "", ""), 503, "telematics_unavailable", true, "5", "not_executed", "", "",
			true},
		"bad signature": {ended(telematics.Unknown, "bad_signature", ""), 502, "command_rejected", false, "10", "unknown",
			"bad_signature", "", true},
		"clock unset": {ended(telematics.Rejected, "clock_unset", ""), 502, "command_rejected", false, "10", "not_executed",
			"clock_unset", "", true},
		"failed": {ended(telematics.Failed, "", "locked_only"), 502, "command_failed", false, "10", "failed", "",
			"locked_only", true},
		"no answer":      {ended(telematics.Unknown, "", ""), 504, "command_timeout", false, "10", "unknown", "", "", true},
		"internal error": {refused(telematics.Broken(errors.New("x"))), 500, "internal", true, "", "", "", "", false},
		"an unknown code": {refused(&telematics.Error{Code: "surprise", Message: "x"}), 500, "internal", true, "", "", "", "",
			false},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.controller.send = func(_ context.Context, o delivery.Order) (telematics.Command, error) {
				return telematics.Command{}, c.end(o)
			}
			r := a.post(lock).wants(c.status, c.code).wantsRetryAfter(c.retryAfter)
			e := r.body.Error
			if r.body.Success || r.body.Data != nil || r.body.Message == "" || r.body.Errors != nil {
				t.Errorf("envelope %s", r.text)
			}
			if e.Retryable != c.retryable || text(e.Outcome) != c.outcome || text(e.Reason) != c.reason || text(e.Detail) != c.detail ||
				(e.CommandID != nil) != c.command {
				t.Errorf("error %s", r.text)
			}
			a.wantsEntries()
		})
	}
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func TestError_CauseIsLoggedAndNotAnswered(t *testing.T) {
	a := newAPI(t)
	a.fleet.err = errors.New("pq: secret detail")
	r := a.get("/api/v1/admin/vehicles/42").wants(500, "internal")
	if strings.Contains(r.text, "secret") {
		t.Errorf("the answer has the cause: %s", r.text)
	}
	if log := a.log.String(); !strings.Contains(log, "secret detail") || !strings.Contains(log, r.body.RequestID) ||
		!strings.Contains(log, `"level":"ERROR"`) {
		t.Errorf("log without the cause: %s", log)
	}
}

var reads = []string{
	"/api/v1/admin/vehicles",
	"/api/v1/admin/vehicles/42",
	status42,
	"/api/v1/admin/vehicles/42/commands",
	"/api/v1/admin/commands/0b6e2c1e-5d5b-4f0e-9c0e-3a52f6a7d8b9",
	"/api/v1/admin/activity",
	"/api/v1/admin/units/unknown",
	"/api/v1/admin/units/keys?key=k1",
}

func TestErrors_ReadOfAMissingOrFrozenServerIsUnavailable(t *testing.T) {
	a, frozen := newAPI(t), newAPI(t, func(c *httpapi.Config) { c.ReadBudget = 5 * time.Millisecond })
	a.fleet.err, frozen.fleet.block = gone{}, true
	for _, read := range reads {
		frozen.get(read).wants(503, "service_unavailable").wantsRetryAfter("10")
		r := a.get(read).wants(503, "service_unavailable").wantsRetryAfter("10")
		if !r.body.Error.Retryable || r.body.Error.Outcome != nil || strings.Contains(r.text, "secret-host") {
			t.Errorf("%s: %s", read, r.text)
		}
	}
}

func TestErrors_UnknownPathHasAnEnvelope(t *testing.T) {
	a := newAPI(t)
	for _, path := range []string{
		"/api", "/api/v1", "/api/v1/admin", "/api/v1/admin/vehicles/42/control", "/api/v1/admin/vehicles/42/control/explode",
		"/api/v1/admin/vehicles/", "/api/v1/admin/vehicles/42/", "/api/v1/admin/vehicles//status", "//api/v1/admin/vehicles",
		"/api/v1/admin/vehicles/42/status/", "/api/v2/admin/vehicles", "/healthz", "/metrics", "/docs/",
		"/api/v1/admin/vehicles/42/control/LOCK",
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			r := a.do(method, path, anonymous)
			r.heads("Content-Type", "application/json").shows(`"not_found"`)
			r.answers(404)
		}
	}
}

func TestDocs_UnknownPathIsNotFound(t *testing.T) {
	a := newAPI(t)
	for _, path := range []string{"/docs/secrets", "/docs/../openapi.yaml", "/docs/.", "/docs/embed.go"} {
		if r := a.get(path, anonymous); r.status != http.StatusNotFound || !strings.Contains(r.text, `"not_found"`) {
			t.Errorf("%s: %d %s", path, r.status, r.text)
		}
	}
}

func TestRoutes_EscapedSlashStaysInItsSegment(t *testing.T) {
	newAPI(t).get("/api/v1/admin/vehicles/4%2F2").wants(422, "validation_failed")
}

func TestErrors_AWrongMethodGetsTheAllowedOnesBeforeTheToken(t *testing.T) {
	a := newAPI(t)
	for path, allow := range map[string]string{lock: "POST", "/api/v1/admin/agencies": "GET", status42: "GET", "/openapi.yaml": "GET"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete, http.MethodPut, http.MethodPatch,
			http.MethodOptions, "BREW"} {
			if method == allow {
				continue
			}
			r := a.do(method, path, anonymous).answers(405).shows(`"method_not_allowed"`)
			if got := r.header.Get("Allow"); !strings.Contains(got, allow) || strings.Contains(got, http.MethodOptions) {
				t.Errorf("%s %s: Allow %q", method, path, got)
			}
		}
	}
}

func TestErrors_TooLargeBodyIsRefused(t *testing.T) {
	a := newAPI(t)
	chunked := func(r *http.Request) { r.ContentLength = -1 }
	huge := strings.Repeat(" ", 64<<10+1)
	for _, target := range []string{lock, attention42} {
		a.post(target, withJSON(huge)).wants(413, "body_too_large")
		a.post(target, withJSON(huge), chunked).wants(413, "body_too_large")
		unread := strings.NewReader(huge)
		a.post(target, anonymous, func(r *http.Request) { r.Body = io.NopCloser(unread) }).wants(401, "unauthenticated")
		same(t, unread.Len(), len(huge), "bytes that were not read without a token")
	}
	largest := `{"signal":"horn"}` + strings.Repeat(" ", 64<<10-17)
	a.post(attention42, withJSON(largest)).wants(200, "")
	a.post(attention42, withJSON(largest), chunked).wants(200, "")
}

func TestErrors_PanicIsInternal(t *testing.T) {
	a := newAPI(t)
	a.controller.send = func(context.Context, delivery.Order) (telematics.Command, error) { panic("kaboom 17") }
	r := a.post(lock).wants(500, "internal")
	if strings.Contains(r.text, "kaboom") {
		t.Errorf("the answer has the text of the panic: %s", r.text)
	}
	if log := a.log.String(); !strings.Contains(log, "kaboom 17") || !strings.Contains(log, "errors_test.go") ||
		!strings.Contains(log, r.body.RequestID) {
		t.Errorf("log without the panic: %s", log)
	}
	a.get("/api/v1/admin/vehicles/42").wants(200, "")
}

func TestErrors_ChecksHaveTheOrderOfTheInterface(t *testing.T) {
	const attention = "/api/v1/admin/vehicles/abc/control/attention"
	client := byClient
	a := newAPI(t)
	a.do(http.MethodPut, attention, anonymous, withJSON(strings.Repeat(" ", 70_000))).wants(405, "method_not_allowed")
	a.post(attention, anonymous, withJSON(strings.Repeat(" ", 70_000))).wants(401, "unauthenticated")
	a.post(attention, client, withJSON(strings.Repeat(" ", 70_000))).wants(413, "body_too_large")
	a.post(attention, client, withJSON(`{`)).wants(403, "forbidden")
	a.post(attention, withBody(`{`)).wants(415, "unsupported_media_type")
	a.post(attention, withJSON(`{`)).wants(400, "malformed_json")
	a.post(attention, withJSON(`{}`)).wants(422, "validation_failed")
	a.controller.fails(telematics.NoSuchVehicle(77))
	a.post("/api/v1/admin/vehicles/77/control/attention", withJSON(`{"signal":"horn"}`)).wants(404, "vehicle_not_found")
}

func TestRequestID_OfTheCallerIsUsedIfItIsAUUID(t *testing.T) {
	a := newAPI(t)
	const given = "9f1c8a52-7f0e-4a54-8a3e-0c8f3b1d2e4f"
	if r := a.get("/api/v1/admin/vehicles", withHeader("X-Request-ID", given)); r.body.RequestID != given {
		t.Errorf("request ID %q, want the caller's", r.body.RequestID)
	}
	for _, bad := range []string{"", "1", "9f1c8a527f0e4a548a3e0c8f3b1d2e4f", "{" + given + "}", "urn:uuid:" + given,
		strings.Repeat("x", 36)} {
		r := a.get("/api/v1/admin/vehicles", withHeader("X-Request-ID", bad))
		if _, err := uuid.Parse(r.body.RequestID); err != nil || r.body.RequestID == bad {
			t.Errorf("X-Request-ID %q: request ID %q, want a new one", bad, r.body.RequestID)
		}
	}
}
