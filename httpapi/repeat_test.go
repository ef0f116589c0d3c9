package httpapi_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestIdempotencyKey_ReachesTheControllerWithAFingerprint(t *testing.T) {
	a := newAPI(t)
	order := func(path string, change ...func(*http.Request)) telematics.IdempotencyKey {
		t.Helper()
		a.post(path, append(change, keyed("morning-round"))...).wants(200, "")
		key := a.controller.last().Idempotency
		if key == nil || key.Key != "morning-round" || key.Subject != "admin-7" {
			t.Fatalf("key %+v, want morning-round of admin-7", key)
		}
		return *key
	}
	first := order(lock)
	same(t, order(lock), first, "the same request has another fingerprint")
	for name, other := range map[string]telematics.IdempotencyKey{
		"another vehicle": order("/api/v1/admin/vehicles/2/control/lock"),
		"another action":  order("/api/v1/admin/vehicles/42/control/unlock"),
		"another body":    order(lock, withBody("{}")),
	} {
		if other.Fingerprint == first.Fingerprint {
			t.Errorf("%s has the same fingerprint", name)
		}
	}
	a.post(lock).wants(200, "")
	if key := a.controller.last().Idempotency; key != nil {
		t.Errorf("without the header, the key is %+v, want none", key)
	}
}

func TestIdempotencyKey_InvalidOneIsRefusedAndRecorded(t *testing.T) {
	for _, key := range []string{"", "two words", "naïve", "tab\t", strings.Repeat("k", 256)} {
		a := newAPI(t)
		r := a.post(lock, keyed(key)).wants(422, "validation_failed")
		if len(r.body.Errors["Idempotency-Key"]) == 0 || a.controller.count() != 0 || len(a.history.all()) != 1 {
			t.Errorf("key %q: errors %v, want one, no order, and one entry", key, r.body.Errors)
		}
	}
	a := newAPI(t)
	twice := func(r *http.Request) { r.Header["Idempotency-Key"] = []string{"a", "b"} }
	a.post(lock, twice).wants(422, "validation_failed")
	a.post(lock, keyed(strings.Repeat("k", 255))).wants(200, "")
	a.get("/api/v1/admin/vehicles/42", keyed("two words")).wants(200, "")
}

func TestRepeatedRequest_ReturnsThePresentStateOfTheFirst(t *testing.T) {
	for state, want := range map[telematics.State]struct {
		status int
		code   string
	}{
		telematics.Succeeded: {http.StatusOK, ""},
		telematics.Failed:    {http.StatusBadGateway, "command_failed"},
		telematics.Unknown:   {http.StatusGatewayTimeout, "command_timeout"},
	} {
		a := newAPI(t)
		a.controller.replay = true
		a.controller.ends(state)
		r := a.post(lock, keyed("k")).wants(want.status, want.code)
		r.heads("Idempotency-Replayed", "true")
	}
	for code, failure := range map[string]*telematics.Error{
		"idempotency_in_progress": telematics.StillOpen(telematics.NoCommand),
		"idempotency_mismatch":    telematics.KeyMismatch(),
		"commands_halted":         telematics.Halted(telematics.Halt{Why: "recall"}),
	} {
		a := newAPI(t)
		a.controller.fails(failure)
		r := a.post(lock)
		r.heads("Idempotency-Replayed", "")
		same(t, r.body.Error.Code, code, "%v: code", code)
	}
}

func TestPrefer_RespondAsyncDoesNotWait(t *testing.T) {
	a := newAPI(t)
	r := a.post(lock, withHeader("Prefer", "respond-async, wait=20")).wants(202, "")
	id, _ := r.at("id").(string)
	r.heads("Location", "/api/v1/admin/commands/"+id, "Preference-Applied", "respond-async, wait=20")
	r.has("state", "accepted", "outcome", nil, "sent_at", nil, "completed_at", nil, "latency_ms", nil, "reported", nil, "reason", nil)
	like(t, a.controller.last(), delivery.Order{Budget: 20 * time.Second}, "a.controller.last()")
	a.controller.start = func(_ context.Context, o delivery.Order) (delivery.Receipt, error) {
		return delivery.Receipt{Command: new(settled(o, telematics.Succeeded)), Replayed: true}, nil
	}
	r = a.post(lock, withHeader("Prefer", "respond-async")).wants(200, "")
	r.heads("Idempotency-Replayed", "true")
}

func TestPrefer_IsAppliedWithinTheLimits(t *testing.T) {
	for prefer, want := range map[string]struct {
		budget  time.Duration
		applied string
	}{
		"wait=1":                        {time.Second, "wait=1"},
		"wait=30":                       {30 * time.Second, "wait=30"},
		`return=minimal; x=1, Wait="7"`: {7 * time.Second, "wait=7"},
		"wait=3, wait=9":                {3 * time.Second, "wait=3"},
		"wait=0":                        {10 * time.Second, ""},
		"wait=0, wait=40":               {30 * time.Second, "wait=30"},
		"wait=40, wait=5":               {30 * time.Second, "wait=30"},
		"wait=31":                       {30 * time.Second, "wait=30"},
		"wait=99999999999999999999":     {30 * time.Second, "wait=30"},
		"wait=9223372037":               {30 * time.Second, "wait=30"},
		// The number is 5 + 2^55: multiplied to nanoseconds, it wraps around to 5 s.
		"wait=36028797018963973":    {30 * time.Second, "wait=30"},
		"wait=+5":                   {10 * time.Second, ""},
		`x="respond-async, wait=7"`: {10 * time.Second, ""},
		`x="a\", wait=7", wait=8`:   {8 * time.Second, "wait=8"},
		"wait":                      {10 * time.Second, ""},
		"wait=-5":                   {10 * time.Second, ""},
		"handling=lenient":          {10 * time.Second, ""},
		"":                          {10 * time.Second, ""},
	} {
		a := newAPI(t)
		r := a.post(lock, withHeader("Prefer", prefer)).wants(200, "")
		r.heads("Preference-Applied", want.applied)
		same(t, a.controller.last().Budget, want.budget, "Prefer %q: budget", prefer)
	}
}
