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
func (a *api) submit(path string, values url.Values, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for _, c := range change {
		c(r)
	}
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	return w
}

const herPassword = "correct horse battery"

func TestPassword_FromTheLinkToTheSignOut(t *testing.T) {
	a, p, _, code := newOffice(t)
	page := a.get("/auth/password?code="+code, anonymous)
	if page.status != 200 || !strings.Contains(page.text, `value="`+code+`"`) || !strings.Contains(page.text, `value="anna"`) ||
		!strings.Contains(page.text, `action="password"`) {
		t.Fatalf("the link's page: %d %s", page.status, page.text)
	}
	values := url.Values{"code": {code}, "name": {"anna"}, "password": {"short"}, "repeated": {"short"}}
	if w := a.submit("/auth/password", values); w.Code != 401 || !strings.Contains(w.Body.String(), operators.TooShort) || !strings.Contains(w.Body.String(), code) {
		t.Errorf("a short password: %d %s", w.Code, w.Body)
	}
	values.Set("password", herPassword)
	values.Set("repeated", herPassword)
	w := a.submit("/auth/password", values)
	if w.Code != 200 || !strings.Contains(w.Body.String(), "You are signed in as anna.") ||
		!strings.Contains(w.Body.String(), `content="0;url=../console/"`) ||
		p.By().Subject != "anna" {
		t.Fatalf("set the password: %d %s, by %+v", w.Code, w.Body, p.By())
	}
	if w := a.submit("/auth/password", values); w.Code != 401 || !strings.Contains(w.Body.String(), signin.LinkUsed) || len(w.Header()["Set-Cookie"]) != 0 {
		t.Errorf("the link again: %d %s", w.Code, w.Body)
	}
	if r := a.get("/auth/password?code="+code, anonymous); r.status != 401 || !strings.Contains(r.text, signin.LinkUsed) {
		t.Errorf("its page again: %d %s", r.status, r.text)
	}

	w = a.submit("/auth/sign-in", url.Values{"name": {"anna"}, "password": {herPassword}})
	if w.Code != 200 || !strings.Contains(w.Body.String(), "You are signed in as anna.") {
		t.Fatalf("sign in: %d %s", w.Code, w.Body)
	}
	cookie, _, _ := strings.Cut(w.Header()["Set-Cookie"][0], ";")
	as := withCookie(cookie)
	me := a.get("/api/v1/admin/me", as).wants(200, "")
	me.has("subject", "anna", "level", "operator", "agency_id", 1.0)
	a.post(lock, as, withHeader("Sec-Fetch-Site", "same-origin")).wants(200, "")
	same(t, a.controller.last().Actor, anna.Actor(), "ordered by")
	a.get("/api/v1/admin/halts", as).wants(200, "")
	a.do(http.MethodPut, "/api/v1/admin/halts", as, withHeader("Sec-Fetch-Site", "same-origin"), withJSON(`{"reason":"x"}`)).wants(403, "forbidden")
	a.get("/api/v1/client/bookings", as).wants(403, "forbidden")
	a.post("/auth/sign-out", as, withHeader("Sec-Fetch-Site", "same-origin"))
	a.get("/api/v1/admin/me", as).wants(401, "unauthenticated")

	var recorded []string
	for _, entry := range a.history.all() {
		if strings.HasPrefix(entry.Action, "session.") {
			recorded = append(recorded, fmt.Sprint(entry.Action, " ", entry.Actor.Subject, " ", entry.Agency))
		}
	}
	if got := strings.Join(recorded, ", "); got != "session.begin anna 1, session.begin anna 1, session.end anna 1" {
		t.Errorf("recorded %q", got)
	}
	if log := a.log.String(); strings.Contains(log, code) || strings.Contains(log, herPassword) {
		t.Error("the log has a code or a password")
	}
}

func TestPassword_ARemovedPersonIsOut(t *testing.T) {
	a, p, _, code := newOffice(t)
	w := a.submit("/auth/password", url.Values{"code": {code}, "password": {herPassword}, "repeated": {herPassword}})
	cookie, _, _ := strings.Cut(w.Header().Get("Set-Cookie"), ";")
	a.get("/api/v1/admin/me", withCookie(cookie)).wants(200, "")
	p.Remove("anna")
	a.get("/api/v1/admin/me", withCookie(cookie)).wants(401, "unauthenticated")
	a.post(lock, withCookie(cookie), withHeader("Sec-Fetch-Site", "same-origin")).wants(401, "unauthenticated")
	same(t, a.controller.count(), 0, "orders")
}

func TestPassword_PagesAreSafeAndTranslated(t *testing.T) {
	a, _, tries, _ := newOffice(t)
	page := a.get("/auth/sign-in", anonymous)
	policy := page.header.Get("Content-Security-Policy")
	if page.status != 200 || !strings.Contains(page.text, `<html lang="en">`) || !strings.Contains(page.text, "A hint.") ||
		!strings.Contains(page.text, `type="password"`) ||
		!strings.HasPrefix(policy, "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; style-src 'sha256-") ||
		page.header.Get("Referrer-Policy") != "same-origin" ||
		page.header.Get("Cache-Control") != "no-store" ||
		page.header.Get("Set-Cookie") != "" {
		t.Errorf("page %d %s\n%v", page.status, page.text, page.header)
	}
	if german := a.get("/auth/sign-in", anonymous, withHeader("Accept-Language", "fr;q=0.3, de-AT, en;q=0.5")); !strings.Contains(german.text, `<html lang="de">`) || !strings.Contains(german.text, "Anmelden") {
		t.Errorf("in German: %s", german.text)
	}
	wrong := url.Values{"name": {"<b>anna"}, "password": {"x"}}
	w := a.submit("/auth/sign-in", wrong, withHeader("Accept-Language", "de"))
	if w.Code != 401 || !strings.Contains(w.Body.String(), "Name oder Passwort ist falsch.") ||
		!strings.Contains(w.Body.String(), `value="&lt;b&gt;anna"`) ||
		strings.Contains(w.Body.String(), "<b>") ||
		len(w.Header()["Set-Cookie"]) != 0 {
		t.Errorf("wrong: %d %s", w.Code, w.Body)
	}
	if w := a.submit("/auth/sign-in", wrong, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }); w.Code != 403 {
		t.Errorf("of another site: %d %s", w.Code, w.Body)
	}
	if w := a.submit("/auth/sign-in", url.Values{"password": {strings.Repeat("x", 20<<10)}}); w.Code != 413 {
		t.Errorf("a large form: %d", w.Code)
	}
	tries.left = 0
	if w := a.submit("/auth/sign-in", wrong); w.Code != 429 || w.Header().Get("Retry-After") != "90" || !strings.Contains(w.Body.String(), signin.ManyTries) {
		t.Errorf("over the limit: %d %s", w.Code, w.Body)
	}
	a, p, _, _ := newOffice(t)
	p.Remove("anna")
	if first := a.get("/auth/sign-in", anonymous); !strings.Contains(first.text, "motorpool operator add NAME") {
		t.Errorf("without operators: %s", first.text)
	}
}

func TestPassword_IsOffWithoutOperators(t *testing.T) {
	a, _ := newBrowserAPI(t)
	same(t, a.submit("/auth/sign-in", url.Values{}).Code, 405, "POST /auth/sign-in")
	same(t, a.submit("/auth/password", url.Values{}).Code, 404, "POST /auth/password")
}
