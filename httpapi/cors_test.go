package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"motorpool/httpapi"
)

const appOrigin = "https://console.example.com"

func withOrigin(origin string) func(*http.Request) { return withHeader("Origin", origin) }

func preflight(a *api, origin string) *response {
	return a.do(http.MethodOptions, lock, anonymous, withOrigin(origin), withHeader("Access-Control-Request-Method", "POST"),
		withHeader("Access-Control-Request-Headers", "authorization,idempotency-key"))
}

func TestCORS_ClosedByDefault(t *testing.T) {
	a := newAPI(t)
	preflight(a, appOrigin).heads("Access-Control-Allow-Origin", "", "Access-Control-Allow-Headers", "")
	a.post(lock, withOrigin(appOrigin)).wants(200, "").heads("Access-Control-Allow-Origin", "", "Vary", "")
}

func TestCORS_AllowsOnlyConfiguredOrigins(t *testing.T) {
	a := newAPI(t, func(c *httpapi.Config) { c.CORSOrigins = []string{appOrigin, "http://localhost:5173"} })
	for _, origin := range []string{appOrigin, "http://localhost:5173"} {
		r := preflight(a, origin)
		if r.status != 204 || r.header.Get("Access-Control-Allow-Origin") != origin ||
			r.header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("preflight of %s: %d %v", origin, r.status, r.header)
		}
		same(t, r.header.Get("Allow"), "", "preflight of %s: Allow", origin)
		for _, name := range []string{"Authorization", "Content-Type", "X-Agency-Signature", "Idempotency-Key", "Prefer", "Last-Event-ID"} {
			if !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), name) {
				t.Errorf("the header %s is not allowed", name)
			}
		}
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			if !strings.Contains(r.header.Get("Access-Control-Allow-Methods"), method) {
				t.Errorf("the method %s is not allowed", method)
			}
		}
		// Error responses must be readable, too.
		for status, change := range map[int]func(*http.Request){200: func(*http.Request) {}, 401: anonymous} {
			r := a.post(lock, withOrigin(origin), change)
			if r.status != status || r.header.Get("Access-Control-Allow-Origin") != origin || r.header.Get("Vary") != "Origin" {
				t.Errorf("call of %s: %d %v", origin, r.status, r.header)
			}
			for _, name := range []string{"X-Request-ID", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After", "Location", "Idempotency-Replayed", "Preference-Applied"} {
				if !strings.Contains(strings.ToLower(r.header.Get("Access-Control-Expose-Headers")), strings.ToLower(name)) {
					t.Errorf("the header %s is not exposed", name)
				}
			}
		}
	}
	for _, origin := range []string{"https://example.com", appOrigin + ".evil.example", "http://console.example.com", appOrigin + ":8443", "https://CONSOLE.example.com", "null", ""} {
		preflight(a, origin).heads("Access-Control-Allow-Origin", "", "Access-Control-Allow-Headers", "")
		a.post(lock, withOrigin(origin)).wants(200, "").heads("Access-Control-Allow-Origin", "")
	}
	// Not a preflight request.
	a.do(http.MethodOptions, lock, anonymous, withOrigin(appOrigin)).heads("Access-Control-Allow-Origin", "")
	if len(a.history.all()) != 0 || a.controller.count() != 2+7 {
		t.Errorf("%d orders, %d entries; want 9 and none", a.controller.count(), len(a.history.all()))
	}
}
