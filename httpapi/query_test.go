package httpapi_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"motorpool/internal/require"
)

// A filter that cannot be parsed must not be left out, which would widen the answer.
func TestQuery_MalformedIsRefused(t *testing.T) {
	for _, target := range []string{
		"/api/v1/admin/vehicles?agency_id=2;",
		"/api/v1/admin/activity?vehicle_id=%zz",
		"/api/v1/admin/activity?vehicle_id=42;limit=5",
		"/api/v1/admin/activity?vehicle_id=1&vehicle_id=2",
	} {
		newAPI(t).get(target).wants(422, "validation_failed")
	}
	// This route has no parameters.
	newBookingAPI(t).asClient(http.MethodGet, "/api/v1/client/bookings/42?x=%zz").wants(422, "validation_failed")
}

func TestBody_TooLargeIsRefusedBeforeItIsSent(t *testing.T) {
	server := httptest.NewServer(newAPI(t).handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	require.NoError(t, err)
	defer conn.Close()
	require.NoError(t, conn.SetDeadline(time.Now().Add(5*time.Second)))
	_ = must(fmt.Fprintf(
		conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Length: 70000\r\n\r\n", lock, adminToken(),
	))
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(line, "413") {
		t.Errorf("answered %q, %v; want 413", line, err)
	}
}

// pages reads a list to its end, and returns the IDs in it.
func pages(a *api, path string, limit int, change ...func(*http.Request)) []any {
	a.t.Helper()
	var ids []any
	cursor := ""
	for range 100 {
		r := a.get(fmt.Sprintf("%s?limit=%d%s", path, limit, cursor), change...).wants(200, "")
		for _, item := range r.body.Data.([]any) {
			ids = append(ids, item.(map[string]any)["id"])
		}
		next, ok := r.body.Meta["next_cursor"].(string)
		if !ok {
			return ids
		}
		cursor = "&cursor=" + next
	}
	a.t.Fatalf("%s: too many pages", path)
	return nil
}

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
			change := changes{}
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
			r.invalid("colour").mentions("colour is not a parameter of this request")
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
