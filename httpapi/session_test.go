package httpapi_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"motorpool/broker/brokertest"
	"motorpool/httpapi"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/signin/signintest"
	"motorpool/httpapi/stream"
)

// newBrowserAPI returns an API with sign-in for browsers, and the cookie of an administrator's
// session.
func newBrowserAPI(t *testing.T) (a *api, cookie string) {
	t.Helper()
	var signIn *signin.SignIn
	a = newAPI(t, withSignIn(t, &signIn))
	return a, a.signIn(signIn)
}

func withSignIn(t *testing.T, signIn **signin.SignIn) func(*httpapi.Config) {
	return func(c *httpapi.Config) {
		var err error
		if *signIn, err = signin.New(signin.Config{
			Store: &signintest.Sessions{}, Tokens: c.Tokens, URL: &url.URL{Scheme: "https", Host: "example.com"}, Now: c.Now, Log: c.Log,
		}); err != nil {
			t.Fatal(err)
		}
		c.SignIn = *signIn
	}
}

// hasPolicy checks that a page runs no script and sends its form to the service alone.
func (r *response) hasPolicy() {
	r.t.Helper()
	const policy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; style-src 'sha256-"
	if got := r.header.Get("Content-Security-Policy"); !strings.HasPrefix(got, policy) {
		r.t.Errorf("policy %s", got)
	}
}

// signIn returns the cookie of an administrator's session.
func (a *api) signIn(signIn *signin.SignIn) (cookie string) {
	t := a.t
	t.Helper()
	code := must(signIn.Offer(t.Context(), adminToken(), time.Minute))
	r := a.get("/auth/once?code="+code, anonymous).answers(200).shows(`content="0;url=../console/"`)
	r.heads("Cache-Control", "no-store", "Referrer-Policy", "no-referrer").hasPolicy()
	set := r.header.Get("Set-Cookie")
	if !strings.Contains(set, "HttpOnly; Secure; SameSite=Strict") || strings.Contains(set, adminToken()) {
		t.Errorf("cookie %s", set)
	}
	cookie, _, _ = strings.Cut(set, ";")
	return cookie
}

func withCookie(cookie string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del("Authorization"); r.Header.Set("Cookie", cookie) }
}

func TestSession_IsAcceptedInsteadOfAToken(t *testing.T) {
	a, cookie := newBrowserAPI(t)
	as := withCookie(cookie)
	same[any](t, a.get("/api/v1/admin/me", as).wants(200, "").at("level"), "administrator", "level")
	a.post(lock, as, withHeader("Sec-Fetch-Site", "same-origin")).wants(200, "")
	ordered := a.controller.last()
	a.post(lock, as, withHeader("Sec-Fetch-Site", "cross-site")).wants(403, "forbidden")
	// A page of another host of the same site has the cookie sent with its requests, and a read may
	// act.
	a.get(refresh42, as, withHeader("Sec-Fetch-Site", "same-site")).wants(403, "forbidden")
	same(t, a.controller.last(), ordered, "a request from another site reached the controller")
	a.get("/api/v1/admin/me", withCookie(cookie+"A")).wants(401, "unauthenticated")
	a.get("/api/v1/client/bookings", as).wants(403, "forbidden")

	a.post("/auth/sign-out", as, withHeader("Sec-Fetch-Site", "cross-site"))
	a.get("/api/v1/admin/me", as).wants(200, "")
	r := a.post("/auth/sign-out", as, withHeader("Sec-Fetch-Site", "same-origin")).answers(200)
	if cookies := strings.Join(r.header.Values("Set-Cookie"), "\n"); !strings.Contains(cookies, "Max-Age=0") {
		t.Errorf("cookies %s, want that of the session removed", cookies)
	}
	a.get("/api/v1/admin/me", as).wants(401, "unauthenticated")

	var sessions []string
	for _, entry := range a.history.all() {
		if strings.HasPrefix(entry.Action, "session.") {
			sessions = append(sessions, entry.Action+" "+entry.Actor.Subject+" "+string(entry.Outcome))
		}
	}
	same(t, sessions, []string{"session.begin admin-7 executed", "session.end admin-7 executed"}, "recorded")
}

func TestSession_StreamsEndWithIt(t *testing.T) {
	var signIn *signin.SignIn
	l := newLiveWith(t, brokertest.NewEvents(), withSignIn(t, &signIn), func(c *stream.Config) { c.PingEvery = time.Hour })
	cookie := l.signIn(signIn)
	ofSession := l.follow("", withCookie(cookie)).awaitBegin(t)
	ofToken := l.follow("").awaitBegin(t)
	l.post("/auth/sign-out", withCookie(cookie))
	same(t, ofSession.awaitEnd(t), "token_refused", "reason")
	if _, ended := ofToken.all(); ended {
		t.Error("the stream of a token ended with another caller's session")
	}
}

func TestSignIn_APageForWhichAServerIsMissingRepeatsItself(t *testing.T) {
	var signIn *signin.SignIn
	a := newAPI(t, withSignIn(t, &signIn))
	sessions := signIn.Store.(*signintest.Sessions)
	link := "/auth/once?code=" + must(signIn.Offer(t.Context(), adminToken(), time.Minute))
	sessions.Fail(1)
	a.get(link, anonymous).answers(503).heads("Refresh", "10")
	for target, status := range map[string]int{link: 200, "/auth/once?code=x": 401} {
		if again := a.get(target, anonymous).answers(status).header.Get("Refresh"); again != "" {
			t.Errorf("%s repeats itself after %s s", target, again)
		}
	}
}

func TestSignIn_AnswersABrowserWithAPage(t *testing.T) {
	a, _ := newBrowserAPI(t)
	for target, want := range map[string]string{
		"/auth/once?code=x":         "This link is not complete.",
		"/auth/sign-in":             "docs/access.md",
		"/auth/callback?code=x":     "Sign in again",
		"/auth/callback?error=<b>x": "Sign in again",
	} {
		r := a.get(target, anonymous).answers(401).shows(want).hides("<b>")
		if kind := r.header.Get("Content-Type"); !strings.HasPrefix(kind, "text/html") {
			t.Errorf("%s: %s", target, kind)
		}
	}
	if strings.Contains(a.log.String(), "code=") {
		t.Error("the log has the code of a link")
	}
	none := newAPI(t)
	none.get("/auth/sign-in", anonymous).answers(404)
}
