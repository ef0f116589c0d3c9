package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
)

// A misspelt filter that is ignored returns more than its caller wanted.
func TestUnknownParameter_IsRefusedByEveryRoute(t *testing.T) {
	a, purse := newBookingAPI(t), newPurse(t)
	places := strings.NewReplacer("{vehicle}", "42", "{booking}", "42", "{agency}", "1", "{key}", "ak_1", "{id}", uuid.NewString())
	routes := 0
	for path, item := range document().Paths.Map() {
		if !strings.HasPrefix(path, "/api/") {
			continue // the payment processor's notices
		}
		for method, operation := range item.Operations() {
			routes++
			change := []func(*http.Request){}
			if method == http.MethodPost {
				change = append(change, keyed("k"))
			}
			if operation.RequestBody != nil {
				change = append(change, withJSON("{}"))
			}
			target := places.Replace(path) + "?colour=red"
			var r *response
			switch {
			case strings.Contains(path, "/client/payment-methods"):
				r = purse.asClient(method, target, change...)
			case strings.HasPrefix(path, "/api/v1/client/"):
				r = a.asClient(method, target, change...)
			default:
				change = append(change, withScopes(t, nil, "all_agencies agency_keys halt"))
				r = a.do(method, target, change...)
			}
			if r.wants(422, "validation_failed"); len(r.body.Errors["colour"]) != 1 || !strings.Contains(r.body.Message, "colour is not a parameter of this request") {
				t.Errorf("%s %s: %s", method, path, r.text)
			}
		}
	}
	if routes < 50 {
		t.Errorf("tried %d routes, want at least 50", routes)
	}
}

func TestUnknownParameter_IsNamedWithTheNearest(t *testing.T) {
	a := newBookingAPI(t)
	for target, want := range map[string]string{
		"/api/v1/admin/bookings?clientt=client-9":         "clientt is not a parameter of this request: did you mean `client`?",
		"/api/v1/admin/vehicles?agencyId=2":               "agencyId is not a parameter of this request: did you mean `agency_id`?",
		"/api/v1/admin/vehicles/42?refresh=true":          "refresh is not a parameter of this request, which has none",
		"/api/v1/admin/vehicles/42/status?wait=5":         "wait is not a parameter of this request; its parameters are refresh",
		"/api/v1/admin/commands?bulk=x&vehicleid=42":      "vehicleid is not a parameter of this request: did you mean `vehicle_id`?",
		"/api/v1/admin/activity?vehicle=42&from=yesteday": "vehicle is not a parameter of this request: did you mean `vehicle_id`?",
	} {
		if r := a.get(target).wants(422, "validation_failed"); !strings.Contains(r.body.Message, want) {
			t.Errorf("%s: message %q, want %q", target, r.body.Message, want)
		}
	}
}
