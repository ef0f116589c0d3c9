package httpapi_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"motorpool/httpapi"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/signin/signintest"
	"motorpool/internal/assert"
	"motorpool/operators"
	"motorpool/telematics"
)

// attempts allows a number of attempts.
type attempts struct{ left int }

func (a *attempts) Take(_ context.Context, limits ...telematics.Limit) ([]telematics.Quota, error) {
	a.left--
	return []telematics.Quota{{Limit: 10, Over: a.left < 0, Reset: 90e9}}, nil
}

var anna = operators.Operator{ID: 1, Name: "anna", Role: operators.Moves, Agency: 1, Epoch: 1}

// newOffice returns an API where people sign in with a password, its only operator anna, and the
// code of her link.
func newOffice(t *testing.T) (*api, *signintest.People, *attempts, string) {
	t.Helper()
	p := signintest.NewPeople(anna)
	code := p.NewLink("anna")
	tries := &attempts{left: 100}
	a := newAPI(t, func(c *httpapi.Config) {
		var err error
		if c.SignIn, err = signin.New(signin.Config{
			Store: &signintest.Sessions{}, Tokens: c.Tokens, URL: &url.URL{Scheme: "https", Host: "example.com"}, Now: c.Now,
			Log: c.Log, Operators: p, Limiter: tries,
		}); err != nil {
			t.Fatal(err)
		}
		c.SignInHint = "A hint."
	})
	return a, p, tries, code
}

// submit sends a form as the service's page does. The routes are not in the contract, against which
// the harness would check them.
func (a *api) submit(path string, values url.Values, change ...func(*http.Request)) *response {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return &response{t: a.t, request: path, status: w.Code, header: w.Header(), text: w.Body.String()}
}

const herPassword = "correct horse battery"

func TestPassword_FromTheLinkToTheSignOut(t *testing.T) {
	a, p, _, code := newOffice(t)
	page := a.get("/auth/password?code="+code, anonymous).answers(200)
	page.shows(`value="`+code+`"`, `value="anna"`, `action="password"`)
	values := url.Values{"code": {code}, "name": {"anna"}, "password": {"short"}, "repeated": {"short"}}
	a.submit("/auth/password", values).answers(401).shows(operators.TooShort, code)
	values.Set("password", herPassword)
	values.Set("repeated", herPassword)
	a.submit("/auth/password", values).answers(200).shows("You are signed in as anna.", `content="0;url=../console/"`)
	same(t, p.By().Subject, "anna", "who set the password")
	a.submit("/auth/password", values).answers(401).shows(signin.LinkUsed).heads("Set-Cookie", "")
	a.get("/auth/password?code="+code, anonymous).answers(401).shows(signin.LinkUsed)

	w := a.submit("/auth/sign-in", url.Values{"name": {"anna"}, "password": {herPassword}}).answers(200)
	w.shows("You are signed in as anna.")
	cookie, _, _ := strings.Cut(w.header.Get("Set-Cookie"), ";")
	as := withCookie(cookie)
	me := a.get("/api/v1/admin/me", as).wants(200, "")
	me.has("subject", "anna", "level", "operator", "agency_id", 1.0)
	a.post(lock, as, withHeader("Sec-Fetch-Site", "same-origin")).wants(200, "")
	same(t, a.controller.last().Actor, anna.Actor(), "ordered by")
	a.get("/api/v1/admin/halts", as).wants(200, "")
	a.do(http.MethodPut, "/api/v1/admin/halts", as, withHeader("Sec-Fetch-Site", "same-origin"), withJSON(`{"reason":"x"}`)).
		wants(403, "forbidden")
	a.get("/api/v1/client/bookings", as).wants(403, "forbidden")
	a.post("/auth/sign-out", as, withHeader("Sec-Fetch-Site", "same-origin"))
	a.get("/api/v1/admin/me", as).wants(401, "unauthenticated")

	var recorded []string
	for _, entry := range a.history.all() {
		if strings.HasPrefix(entry.Action, "session.") {
			recorded = append(recorded, fmt.Sprint(entry.Action, " ", entry.Actor.Subject, " ", entry.Agency))
		}
	}
	assert.Equal(t, strings.Join(recorded, ", "), "session.begin anna 1, session.begin anna 1, session.end anna 1", "recorded")
	if log := a.log.String(); strings.Contains(log, code) || strings.Contains(log, herPassword) {
		t.Error("the log has a code or a password")
	}
}

func TestPassword_PagesAreSafeAndTranslated(t *testing.T) {
	a, _, tries, _ := newOffice(t)
	page := a.get("/auth/sign-in", anonymous).answers(200).shows(`<html lang="en">`, "A hint.", `type="password"`)
	page.heads("Referrer-Policy", "same-origin", "Cache-Control", "no-store", "Set-Cookie", "").hasPolicy()
	a.get("/auth/sign-in", anonymous, withHeader("Accept-Language", "fr;q=0.3, de-AT, en;q=0.5")).
		shows(`<html lang="de">`, "Anmelden")
	wrong := url.Values{"name": {"<b>anna"}, "password": {"x"}}
	a.submit("/auth/sign-in", wrong, withHeader("Accept-Language", "de")).answers(401).
		shows("Name oder Passwort ist falsch.", `value="&lt;b&gt;anna"`).hides("<b>").heads("Set-Cookie", "")
	a.submit("/auth/sign-in", wrong, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }).answers(403)
	a.submit("/auth/sign-in", url.Values{"password": {strings.Repeat("x", 20<<10)}}).answers(413)
	tries.left = 0
	a.submit("/auth/sign-in", wrong).answers(429).heads("Retry-After", "90").shows(signin.ManyTries)
	a, p, _, _ := newOffice(t)
	p.Remove("anna")
	a.get("/auth/sign-in", anonymous).shows("motorpool operator add NAME")
}

func TestPassword_IsOffWithoutOperators(t *testing.T) {
	a, _ := newBrowserAPI(t)
	a.submit("/auth/sign-in", url.Values{}).answers(405)
	a.submit("/auth/password", url.Values{}).answers(404)
}
