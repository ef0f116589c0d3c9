package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"motorpool/httpapi/request"
	"motorpool/telematics"
)

// halts is the store of halts in memory.
type halts struct {
	agencies []telematics.AgencyID
	inForce  telematics.Halts
	by       []telematics.Author
	resumed  []string // why
	err      error

	effect    telematics.HaltEffect // of each halt
	uncounted error
}

func (h *halts) Halts(context.Context) (telematics.Halts, error) { return h.inForce, h.err }

func (h *halts) Halt(_ context.Context, made telematics.Halt, by telematics.Author) (telematics.Halt, bool, error) {
	h.by = append(h.by, by)
	if h.err != nil || made.Agency != 0 && !slices.Contains(h.agencies, made.Agency) {
		return telematics.Halt{}, false, h.err
	}
	made.By, made.Since = by.Subject, now
	h.inForce = append(h.inForce, made)
	return made, true, nil
}

func (h *halts) Effects(_ context.Context, of telematics.Halts) ([]telematics.HaltEffect, error) {
	effects := make([]telematics.HaltEffect, len(of))
	for i := range of {
		effects[i] = h.effect
	}
	return effects, h.uncounted
}

func (h *halts) Resume(_ context.Context, agency telematics.AgencyID, why string, by telematics.Author) (bool, error) {
	h.by, h.resumed = append(h.by, by), append(h.resumed, why)
	before := len(h.inForce)
	h.inForce = slices.DeleteFunc(h.inForce, func(halt telematics.Halt) bool { return halt.Agency == agency })
	return len(h.inForce) < before, h.err
}

const haltsPath = "/api/v1/admin/halts"

func withScopes(t *testing.T, agency any, scope string) func(*http.Request) {
	return claiming(claimSet{"sub": "eva", "agency_id": agency, "scope": scope})
}

func TestHalts_AreSetListedAndLifted(t *testing.T) {
	a := newAPI(t)
	operator := withScopes(t, nil, "all_agencies halt")
	r := a.do(http.MethodPut, haltsPath, operator, withJSON(`{"reason":"recall","agency_id":null}`)).wants(200, "")
	r.has("agency_id", nil, "reason", "recall", "by", "eva", "since", "2026-01-02T10:00:00.250Z").
		says("Commands to vehicles of all agencies are halted.")
	a.do(http.MethodPut, haltsPath, operator, withJSON(`{"reason":"theft","agency_id":2}`)).wants(200, "")
	eva := telematics.Actor{Subject: "eva", Role: telematics.Admin}
	same(t, a.halts.by[0], telematics.Author{Actor: eva, RequestID: uuid.MustParse(r.body.RequestID)}, "author")
	a.get(haltsPath).wants(200, "").lists(2)
	a.get(haltsPath, ofAgency(1)).wants(200, "").lists(1)
	a.do(http.MethodDelete, haltsPath+"?agency_id=2&reason=car+is+back", operator).
		wants(200, "").has("", nil).says("The halt of agency 2 is lifted.")
	a.do(http.MethodDelete, haltsPath+"?agency_id=2", operator).wants(404, "halt_not_found")
	a.do(http.MethodDelete, haltsPath, operator).wants(200, "")
	same(t, len(a.halts.inForce), 0, "active halts %+v, want none", a.halts.inForce)
	same(t, a.halts.resumed, []string{"car is back", "", ""}, "reasons of lifting")
	// The others are the store's.
	a.wantsEntries(logged{Action: telematics.CommandsResume, Code: "halt_not_found"})
}

func TestHalts_NeedTheScopeAndTheAgency(t *testing.T) {
	for name, c := range map[string]struct {
		agency any
		scope  string
		body   string
		query  string
		status int
	}{
		"agency's administrator, halt of all":         {1, "halt", `{"reason":"x"}`, "", 403},
		"agency's administrator, halt of all by null": {1, "halt", `{"reason":"x","agency_id":null}`, "", 403},
		"agency's administrator, halt of another":     {1, "halt", `{"reason":"x","agency_id":2}`, "?agency_id=2", 403},
		"all agencies narrowed to one, halt of all":   {1, "all_agencies halt", `{"reason":"x"}`, "", 403},
		"administrator of all agencies, no scope":     {nil, "all_agencies", `{"reason":"x"}`, "", 403},
		"agency's administrator, halt of its agency":  {1, "halt", `{"reason":"x","agency_id":1}`, "?agency_id=1", 200},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			a.halts.inForce = telematics.Halts{{Agency: 0, Why: "recall"}, {Agency: 1, Why: "recall"}, {Agency: 2, Why: "recall"}}
			token := withScopes(t, c.agency, c.scope)
			a.do(http.MethodPut, haltsPath, token, withJSON(c.body)).answers(c.status)
			a.do(http.MethodDelete, haltsPath+c.query, token).answers(c.status)
			if c.status == 200 {
				return
			}
			same(t, len(a.halts.inForce), 3, "active halts")
			a.wantsEntries(
				logged{Action: telematics.CommandsHalt, Code: "forbidden"}, logged{Action: telematics.CommandsResume, Code: "forbidden"},
			)
		})
	}
}

// A request with a misspelt, empty or zero agency must neither halt all agencies nor lift another
// halt.
func TestHalts_UnclearRequestsAreRefused(t *testing.T) {
	a := newAPI(t)
	a.halts.inForce = telematics.Halts{{Agency: 0, Why: "recall"}}
	operator := withScopes(t, nil, "all_agencies halt")
	for _, body := range []string{
		`{}`, `{"reason":""}`, `{"reason":" "}`, `{"reason":"a\u0000"}`, `{"reason":"x","agency_id":0}`, `{"reason":"x","agency_id":""}`,
		`{"reason":"x","agency_id":1e30}`, `{"reason":"x","agency_id":1.5}`, `{"reason":"x","agency_id":"1"}`, `{"reason":"x","agency":1}`,
		`{"reason":"x","agency_id":3}`, `{"reason":"` + strings.Repeat("x", 501) + `"}`,
	} {
		a.do(http.MethodPut, haltsPath, operator, withJSON(body)).wants(422, "validation_failed")
	}
	for _, query := range []string{"?agency_id=", "?agency_id=0", "?agency_id=-1", "?agency_id=x", "?agency_id=1&agency_id=2",
		"?agency_id=%zz", "?agency=1", "?Agency_ID=1", "?agency_id=1&x=2",
		"?reason=", "?reason=%20", "?reason=a%00", "?reason=a&reason=b", "?reason=" + strings.Repeat("x", 501)} {
		a.do(http.MethodDelete, haltsPath+query, operator).wants(422, "validation_failed")
	}
	if r := a.do(http.MethodDelete, haltsPath+"?agency=1", operator); !strings.Contains(r.text, "did you mean `agency_id`?") {
		t.Errorf("the refusal does not suggest agency_id: %s", r.text)
	}
	a.do(http.MethodPut, haltsPath+"?agency_id=1", operator, withJSON(`{"reason":"x"}`)).wants(422, "validation_failed")
	a.do(http.MethodDelete, haltsPath, operator, withJSON(`{"agency_id":1}`)).wants(422, "validation_failed")
	same(t, len(a.halts.inForce), 1, "active halts %+v, want 1", a.halts.inForce)
}

func TestHalts_AreNotLimitedLikeOtherRequests(t *testing.T) {
	a, _ := limitedAPI(t, request.Rates{Admin: 1})
	operator := withScopes(t, nil, "all_agencies halt")
	a.get(haltsPath, operator).wants(200, "")
	a.get(haltsPath, operator).wants(429, "rate_limited")
	a.do(http.MethodPut, haltsPath, operator, withJSON(`{"reason":"recall"}`)).wants(200, "")
	a.do(http.MethodDelete, haltsPath, operator).wants(200, "")
}

// Each change adds an entry to the audit log, which cannot be deleted from, so changes are limited
// per actor.
func TestHalts_ChangesOfAnActorAreLimited(t *testing.T) {
	a := newAPI(t)
	operator, another := withScopes(t, nil, "all_agencies halt"), withScopes(t, int64(1), "halt")
	for range 600 {
		w := httptest.NewRecorder() // without the check of the contract, which takes longer
		request := httptest.NewRequest(http.MethodDelete, haltsPath, nil)
		operator(request)
		if a.handler.ServeHTTP(w, request); w.Code != 404 {
			t.Fatalf("%d %s, want no halt found", w.Code, w.Body)
		}
	}
	r := a.do(http.MethodDelete, haltsPath, operator)
	r.wants(429, "rate_limited")
	same(t, r.header.Get("Retry-After"), "1", "Retry-After")
	a.do(http.MethodPut, haltsPath, another, withJSON(`{"reason":"recall","agency_id":1}`)).wants(200, "")
}

func TestHalts_HaveTheirEffect(t *testing.T) {
	a := newAPI(t)
	a.halts.effect = telematics.HaltEffect{Vehicles: 120, Withheld: 3, InFlight: 2}
	operator := withScopes(t, nil, "all_agencies halt")
	r := a.do(http.MethodPut, haltsPath, operator, withJSON(`{"reason":"recall"}`)).wants(200, "")
	r.has("effect.vehicles", 120., "effect.withheld", 3., "effect.in_flight", 2.).
		says("Commands to vehicles of all agencies are halted. 2 commands sent before may still be executed.")
	if r := a.get(haltsPath).wants(200, ""); !strings.Contains(r.text, `"effect":{"vehicles":120,"withheld":3,"in_flight":2}`) {
		t.Errorf("the list lacks the effect: %s", r.text)
	}
	a.halts.uncounted = errors.New("too slow") // the halt is still in force
	a.do(http.MethodPut, haltsPath, operator, withJSON(`{"reason":"theft"}`)).wants(200, "").has("effect", nil)
}

func TestHalts_UnavailableRecordIs503(t *testing.T) {
	a := newAPI(t)
	a.halts.err = telematics.Unavailable("Postgres", errors.New("down"))
	operator := withScopes(t, nil, "all_agencies halt")
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if r := a.do(method, haltsPath, operator); r.status != 503 || !r.body.Error.Retryable {
			t.Errorf("%s: %d %s", method, r.status, r.text)
		}
	}
	if r := a.do(http.MethodPut, haltsPath, operator, withJSON(`{"reason":"x"}`)); r.status != 503 || !r.body.Error.Retryable {
		t.Errorf("PUT: %d %s", r.status, r.text)
	}
}
