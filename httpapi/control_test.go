package httpapi_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

const attention42 = "/api/v1/admin/vehicles/42/control/attention"

func TestControl_EachActionReachesTheController(t *testing.T) {
	a := newAPI(t)
	for _, action := range telematics.ControlActions {
		var change changes
		if action == telematics.AttentionSignal {
			change = append(change, withJSON(`{"signal":"horn"}`))
		}
		r := a.post("/api/v1/admin/vehicles/42/control/"+string(action), change...).wants(200, "")
		order := a.controller.last()
		like(t, order, delivery.Order{Action: action, Vehicle: 42, Actor: telematics.Actor{Subject: "admin-7",
			Role: telematics.Admin}, Budget: telematics.DefaultBudget}, "order")
		same(t, order.RequestID.String(), r.body.RequestID, "%v: request ID", action)
		if !strings.Contains(r.body.Message, "42") || strings.Contains(r.body.Message, "executed") || !r.body.Success {
			t.Errorf("%s: message %q", action, r.body.Message)
		}
		// Of the data, see TestStream_SendsEvents.
		r.has("action", string(action)).heads("Content-Type", "application/json", "Cache-Control", "no-store")
		same(t, r.body.Timestamp, "2026-01-02T10:00:00.250Z", "timestamp")
	}
	a.wantsEntries()
}

func TestAttention_HasDefaultsAndIgnoresCase(t *testing.T) {
	a := newAPI(t)
	for body, want := range map[string]telematics.Attention{
		`{"signal":"horn"}`:                      {Signal: telematics.Horn, Duration: time.Second},
		`{"signal":"lights","duration_ms":1}`:    {Signal: telematics.Lights, Duration: time.Millisecond},
		`{"signal":"both","duration_ms":5000}`:   {Signal: telematics.Both, Duration: 5 * time.Second},
		`{"signal":"horn","duration_ms":1000.0}`: {Signal: telematics.Horn, Duration: time.Second},
		`{"signal":"horn","duration_ms":2e3}`:    {Signal: telematics.Horn, Duration: 2 * time.Second},
		`{"signal":"horn","duration_ms":null}`:   {Signal: telematics.Horn, Duration: time.Second},
		" \n{\"signal\":\"horn\"}\n ":            {Signal: telematics.Horn, Duration: time.Second},
	} {
		r := a.post(attention42, withJSON(body)).wants(200, "")
		if got := a.controller.last().Attention; got == nil || *got != want {
			t.Errorf("%s: order with %+v, want %+v", body, got, want)
		}
		r.has("parameters.signal", string(want.Signal), "parameters.duration_ms", float64(want.Duration.Milliseconds()))
	}
}

func TestAttention_InvalidOneIsRefusedAndRecorded(t *testing.T) {
	for body, field := range map[string]string{
		``:                                       "signal",
		`{"signal":"siren"}`:                     "signal",
		`{"signal":1}`:                           "signal",
		`{"signal":"horn","duration_ms":0}`:      "duration_ms",
		`{"signal":"horn","duration_ms":5001}`:   "duration_ms",
		`{"signal":"horn","duration_ms":1.5}`:    "duration_ms",
		`{"signal":"horn","duration_ms":"1000"}`: "duration_ms",
		`{"signal":"horn","duration_ms":1e999}`:  "duration_ms",
		`{"duration_ms":9999}`:                   "duration_ms",
		`[]`:                                     "body",
	} {
		a := newAPI(t)
		r := a.post(attention42, withJSON(body)).invalid(field).wantsRetryAfter("").shows(`"retryable":false`, `"outcome":null`)
		same(t, a.controller.count(), 0, "%s: orders", body)
		a.wantsEntries(logged{
			Action: "command.attention", Code: "validation_failed", Outcome: telematics.NotExecuted, Vehicle: 42,
			RequestID: uuid.MustParse(r.body.RequestID),
		})
	}
}

func TestValidation_MessageNamesTheRule(t *testing.T) {
	r := newAPI(t).post(attention42, withJSON(`{"duration_ms":6000}`))
	same(t, r.body.Errors["signal"], []string{"is required: must be one of horn, lights, both"}, "signal")
	same(t, r.body.Errors["duration_ms"], []string{"must be an integer from 1 to 5000"}, "duration_ms")
}

func TestControl_InvalidJSONIsRefused(t *testing.T) {
	a := newAPI(t)
	for _, body := range []string{`{`, `{"signal":"horn"} x`, `{"signal":"horn"}{}`, `{"signal":"horn",}`, `horn`,
		"{\"signal\":\"horn\",\"x\":\"\xff\"}", "\xef\xbb\xbf{}", strings.Repeat("[", 30_000)} {
		a.post(attention42, withJSON(body)).wants(400, "malformed_json")
	}
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/json; charset=latin1",
		"application/jsonx", ";"} {
		a.post(attention42, withBody(`{"signal":"horn"}`), withHeader("Content-Type", kind)).wants(415, "unsupported_media_type")
	}
	a.post(attention42, withJSON(`{"signal":"horn"}`), withHeader("Content-Encoding", "gzip")).wants(415, "unsupported_media_type")
	a.post(attention42, withBody(`{"signal":"horn"}`), withHeader("Content-Type", "Application/JSON; charset=UTF-8")).wants(200, "")
}

func TestControl_VehicleMustBeAnInteger(t *testing.T) {
	a := newAPI(t)
	for id, status := range map[string]int{
		// The controller decides whether they exist.
		"42": 200, "0": 200, "-1": 200, "9223372036854775807": 200,
		"abc": 422, "1.0": 422, "42x": 422, "%20": 422, "9223372036854775808": 422, "1e3": 422, "null": 422, "%00": 422,
		// A fleet's own number, perhaps: 42 is another car.
		"0042": 422, "+42": 422, "%2B42": 422, "-0": 422,
	} {
		code := ""
		if status == 422 {
			code = "validation_failed"
		}
		r := a.post("/api/v1/admin/vehicles/"+id+"/control/lock").wants(status, code)
		if status == 422 && r.body.Errors["vehicle"][0] != "must be an integer" {
			t.Errorf("%s: errors %v, want that it must be an integer", id, r.body.Errors)
		}
	}
}
