package httpapi_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"motorpool/telematics"
)

func TestUnknownMember_IsRefusedAndNamed(t *testing.T) {
	a, clients := newBookingAPI(t), newPurse(t)
	admin := func(path string) func(string) *response {
		return func(body string) *response {
			return a.post("/api/v1/admin/"+path, withJSON(body), keyed("k"))
		}
	}
	client := func(b *bookingAPI, path string) func(string) *response {
		return func(body string) *response {
			return b.asClient(http.MethodPost, "/api/v1/client/"+path, withJSON(body), keyed("k"))
		}
	}
	cards := func(body string) *response {
		return clients.asClient(http.MethodPost, methods, withJSON(body))
	}
	for name, c := range map[string]struct {
		post  func(string) *response
		body  string
		field string
		says  string
	}{
		"refund": {admin("bookings/42/refund"), `{"amuont":10.00,"reason":"x"}`, "amuont", "is unknown: did you mean `amount`?"},
		"capture": {admin("bookings/42/deposit/capture"), `{"amount":1,"reason":"x","currency":"JPY"}`, "currency",
			"is unknown: the members are amount, reason"},
		"another case": {admin("vehicles/42/control/attention"), `{"SIGNAL":"horn"}`, "SIGNAL", "is unknown: did you mean `signal`?"},
		"bulk's parameters": {admin("commands"), `{"action":"attention","vehicle_ids":[42],"parameters":{"signal":"horn",` +
			`"duration":9}}`, "parameters.duration", "is unknown: did you mean `duration_ms`?"},
		"lock":            {admin("vehicles/42/control/lock"), `{"force":true}`, "force", "is unknown: this request takes no members"},
		"start":           {admin("bookings/42/start"), `{"at":"now"}`, "at", "is unknown: this request takes no members"},
		"client's unlock": {client(a, "bookings/42/control/unlock"), `{"x":1}`, "x", "is unknown: this request takes no members"},
		"card":            {cards, `{"payment_method_id":"pm_1","default":true}`, "default", "is unknown: did you mean `set_default`?"},
	} {
		r := c.post(c.body).wants(422, "validation_failed")
		same(t, r.body.Errors[c.field], []string{c.says}, "%s: errors", name)
		if !strings.Contains(r.body.Message, c.field+" "+c.says) || strings.HasSuffix(r.body.Message, "?.") {
			t.Errorf("%s: message %q", name, r.body.Message)
		}
	}
	if a.controller.count() != 0 || len(a.bookings.byID[42].Charges) != 2 || a.nudges != 0 {
		t.Error("an invalid request had an effect")
	}
}

func TestBody_OfARequestWithoutOneIsRefused(t *testing.T) {
	a := newAPI(t)
	const defaultMethod = methods + "/7/default"
	purse := newPurse(t)
	for _, body := range []string{"", " \n", "{}", " { } ", "null"} {
		a.post(lock, withBody(body), withHeader("Content-Type", "text/plain")).wants(200, "")
	}
	for _, body := range []string{`{"signal":`, `[]`, `"x"`, `1`, `x=1`, `{} {}`} {
		for name, r := range map[string]*response{
			"lock":           a.post(lock, withBody(body)),
			"default method": purse.asClient(http.MethodPost, defaultMethod, withBody(body)),
			"removal":        purse.asClient(http.MethodDelete, methods+"/7", withBody(body)),
		} {
			if r.wants(422, "validation_failed"); len(r.body.Errors["body"]) != 1 {
				t.Errorf("%s with body %s: errors %v, want one for body", name, body, r.body.Errors)
			}
		}
	}
}

func TestUnknownMember_NumberOfErrorsIsLimited(t *testing.T) {
	var members []string
	for i := range 5_000 {
		members = append(members, fmt.Sprintf(`"m%d":1`, i))
	}
	a := newAPI(t)
	unknown := "{" + strings.Join(members, ",") + "}"
	rules := `{"rules":[{` + strings.Join(members, `},{`) + `}]}`
	for _, r := range []*response{
		a.post(lock, withJSON(unknown)), a.post(attention42, withJSON(unknown)), a.do(http.MethodPut, rulesOfOne, withJSON(rules)),
	} {
		r.wants(422, "validation_failed")
		if n := len(r.body.Errors); n > 32 || len(r.text) > 8_000 {
			t.Errorf("%d errors, %d bytes; want at most 32 errors, 8000 bytes", n, len(r.text))
		}
	}
}

func TestRepeatedMember_IsRefused(t *testing.T) {
	a := newAPI(t)
	for body, field := range map[string]string{
		`{"signal":"horn","signal":"lights"}`:      "signal",
		`{"signal":"horn","sign\u0061l":"lights"}`: "signal",
		`{"signal":"horn","signal":null}`:          "signal",
	} {
		r := a.post(attention42, withJSON(body)).wants(422, "validation_failed")
		if !slices.Contains(r.body.Errors[field], "must not be repeated") {
			t.Errorf("%s: errors %v, want that the member must not be repeated", body, r.body.Errors)
		}
	}
	r := a.post("/api/v1/admin/commands", withJSON(`{"action":"attention","vehicle_ids":[42],"parameters":{"signal":"horn",`+
		`"signal":"both"}}`)).wants(422, "validation_failed")
	if !slices.Contains(r.body.Errors["parameters.signal"], "must not be repeated") {
		t.Errorf("nested: errors %v, want that the member must not be repeated", r.body.Errors)
	}
	same(t, a.controller.count(), 0, "the controller got an order")
}

func TestValidation_AllErrorsAreReturnedTogether(t *testing.T) {
	wrong := func(r *response, fields ...string) {
		t.Helper()
		same(t, slices.Sorted(maps.Keys(r.body.Errors)), fields, "fields with errors")
	}
	a := newAPI(t)
	r := a.post("/api/v1/admin/vehicles/x/control/attention", withJSON(`{"duration_ms":9999,"volume":1}`), keyed("a b"),
		func(r *http.Request) { r.URL.RawQuery = "%zz" }).wants(422, "validation_failed")
	wrong(r, "Idempotency-Key", "duration_ms", "query", "signal", "vehicle", "volume")
	r = a.get("/api/v1/admin/vehicles?status=flying&limit=0&cursor=x").wants(422, "validation_failed")
	wrong(r, "cursor", "limit", "status")
	r = a.post("/api/v1/admin/commands", withJSON(`{"action":"attention","vehicle_ids":[42,42.0],"x":1}`), keyed("")).
		wants(422, "validation_failed")
	wrong(r, "Idempotency-Key", "parameters.signal", "vehicle_ids", "x")
	b := newBookingAPI(t)
	r = b.post(adminBooking+"/refund", withJSON(`{"amount":-1,"full":true,"reason":" ","x":1}`), keyed("k")).wants(422, "validation_failed")
	wrong(r, "amount", "full", "reason", "x")
	a.wantsEntries(logged{Code: "validation_failed"}, logged{Action: telematics.BulkOrder})
}
