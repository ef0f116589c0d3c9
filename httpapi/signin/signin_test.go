package signin_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/signin/signintest"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

// world has an issuer, and instances of the service that share a store.
type world struct {
	t      *testing.T
	issuer *fakeIssuer
	store  *signintest.Sessions
	ahead  atomic.Int64 // how far the clock of the instances is ahead
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{t: t, issuer: startIssuer(t), store: &signintest.Sessions{}}
}

func newSignIn(t *testing.T) (*world, *signin.SignIn) {
	t.Helper()
	w := newWorld(t)
	return w, w.instance()
}

const public = "https://fleet.example.com/motorpool"

func (w *world) instance() *signin.SignIn {
	w.t.Helper()
	now := func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	keys := auth.NewKeys(auth.KeysConfig{Source: w.issuer.keyFile(), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- keys.Run(ctx) }()
	w.t.Cleanup(func() {
		cancel()
		assert.NoError(w.t, <-done, "<-done")
	})
	for keys.Ready(ctx) != nil {
		time.Sleep(time.Millisecond)
	}
	address, err := url.Parse(public)
	require.NoError(w.t, err)
	s := must(signin.New(signin.Config{
		Store: w.store, URL: address, Now: now, Log: slog.New(slog.DiscardHandler),
		Tokens: auth.NewTokens(auth.TokensConfig{Issuer: w.issuer.URL, Audience: audience, Keys: keys, Now: now, Leeway: time.Nanosecond}),
		Issuer: signin.IssuerConfig{
			URL: w.issuer.URL, ClientID: clientID, ClientSecret: clientSecret, Scopes: []string{"offline_access"},
			Audience: audience,
		},
	}))
	return s
}

// browse opens a page of the issuer in a browser, and returns the address to which it is
// redirected.
func (w *world) browse(page string) *url.URL {
	w.t.Helper()
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Get(page)
	require.NoError(w.t, err)
	defer answer.Body.Close()
	back := must(answer.Location())
	if !strings.HasPrefix(back.String(), public+"/auth/callback?") {
		w.t.Fatalf("redirected to %s, want the callback", back)
	}
	return back
}

func request(method string, cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(method, public+"/api/v1/admin/vehicles", nil)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	return r
}

func callback(back *url.URL, cookies ...*http.Cookie) *http.Request {
	r := httptest.NewRequest(http.MethodGet, back.String(), nil)
	for _, cookie := range cookies {
		r.AddCookie(cookie)
	}
	return r
}

// begin begins a sign-in, and returns the address of its callback and the cookie of the attempt.
func (w *world) begin(s *signin.SignIn) (back *url.URL, attempt *http.Cookie) {
	w.t.Helper()
	page, attempt, err := s.Begin(w.t.Context())
	require.NoError(w.t, err)
	return w.browse(page), attempt
}

// finish returns the error of a callback.
func finish(s *signin.SignIn, back *url.URL, attempt *http.Cookie) error {
	_, _, err := s.Finish(callback(back, attempt), "192.0.2.1")
	return err
}

// use returns the error of a request with the cookie of a session.
func use(s *signin.SignIn, cookie *http.Cookie) error {
	_, err := s.Authorization(request(http.MethodGet, cookie))
	return err
}

// signIn signs in and returns the cookie of the new session.
func (w *world) signIn(s *signin.SignIn) *http.Cookie {
	w.t.Helper()
	back, attempt := w.begin(s)
	id, cookies, err := s.Finish(callback(back, attempt), "192.0.2.1")
	require.NoError(w.t, err)
	if id.Actor != (telematics.Actor{Subject: "zoe", Role: telematics.Admin, Agency: 7}) || id.Level != auth.Operator {
		w.t.Fatalf("signed in as %+v", id)
	}
	if cookies[1].Name != attempt.Name || cookies[1].MaxAge >= 0 {
		w.t.Errorf("the cookie of the attempt is not removed: %v", cookies[1])
	}
	return cookies[0]
}

func wants(t *testing.T, err error, code telematics.Code, word string) {
	t.Helper()
	var refusal *telematics.Error
	if !errors.As(err, &refusal) || refusal.Code != code || !strings.Contains(refusal.Message, word) {
		t.Errorf("error %v, want %s with %q", err, code, word)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func isUnavailable(err error) bool {
	var server interface{ Unavailable() bool }
	return errors.As(err, &server) && server.Unavailable()
}

func TestSignIn_BrowserGetsOnlyACookie(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	cookie := w.signIn(s)
	if want := (http.Cookie{Name: "__Host-motorpool-6ebd58bd", Value: cookie.Value, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteStrictMode}); cookie.String() != want.String() {
		t.Errorf("cookie %s, want %s", cookie, &want)
	}
	header := must(other.Authorization(request(http.MethodGet, cookie)))
	token := strings.TrimPrefix(header, "Bearer ")
	if strings.Count(token, ".") != 2 {
		t.Fatalf("header %q, want a JWT", header)
	}
	// The store has no text from which a session or token can be used.
	if kept := w.store.String(); strings.Contains(kept, token) || strings.Contains(kept, "zoe") || strings.Contains(kept, cookie.Value) ||
		strings.Contains(kept, "eyJ") {
		t.Errorf("the store has a secret or a name: %q", kept)
	}
	for name, r := range map[string]*http.Request{"none": request(http.MethodGet),
		"another": request(http.MethodGet, &http.Cookie{Name: "x", Value: cookie.Value})} {
		if header, err := s.Authorization(r); header != "" || err != nil {
			t.Errorf("with the cookie %s: header %q, %v; want none", name, header, err)
		}
	}
	// A request with a token does not use its cookie.
	both := request(http.MethodGet, cookie)
	both.Header.Set("Authorization", "Bearer a.b.c")
	if header, err := s.Authorization(both); header != "" || err != nil {
		t.Errorf("with a token and a cookie: header %q, %v; want none", header, err)
	}
	for _, value := range []string{"", "x", cookie.Value[1:] + "A", strings.Repeat("A", 43)} {
		_, err := s.Authorization(request(http.MethodGet, &http.Cookie{Name: cookie.Name, Value: value}))
		wants(t, err, "unauthenticated", "Sign in again")
	}
}

func TestFinish_RefusesAnAttemptOfAnotherBrowser(t *testing.T) {
	w, s := newSignIn(t)
	back, attempt := w.begin(s)
	_, later := w.begin(s)
	third, thirdAttempt := w.begin(s)
	changed := func(u url.URL, name, value string) *url.URL {
		q := u.Query()
		q.Set(name, value)
		u.RawQuery = q.Encode()
		return &u
	}
	for name, c := range map[string]struct {
		r    *http.Request
		word string
	}{
		"another browser":           {callback(back), "another browser"},
		"a later attempt":           {callback(back, later), "Another sign-in"},
		"an invented state":         {callback(changed(*back, "state", "x"), attempt), "Another sign-in"},
		"another issuer (RFC 9207)": {callback(changed(*back, "iss", "https://evil.example"), attempt), "another issuer"},
		"refused by the issuer": {
			callback(&url.URL{Path: "/", RawQuery: "error=access_denied&state=" + back.Query().Get("state")}, attempt), "access_denied",
		},
		"an invented code":  {callback(changed(*third, "code", "x"), thirdAttempt), "not good"},
		"an invalid cookie": {callback(back, &http.Cookie{Name: attempt.Name, Value: "e30"}), "another browser"},
	} {
		_, cookies, err := s.Finish(c.r, "192.0.2.1")
		if len(cookies) > 0 {
			t.Errorf("%s: signed in", name)
		}
		wants(t, err, "unauthenticated", c.word)
	}
	assert.NoError(t, finish(s, back, attempt), "the attempt")
	// An attempt signs in once.
	wants(t, finish(s, back, attempt), "unauthenticated", "used already")
}

func TestFinish_AcceptsRolesOfTheConsole(t *testing.T) {
	w, s := newSignIn(t)
	for _, c := range []struct {
		claims map[string]any
		code   telematics.Code
	}{
		{map[string]any{"role": "client", "agency_id": 7}, "forbidden"},
		{map[string]any{"role": "janitor"}, "forbidden"},
		{map[string]any{"role": "admin"}, "unauthenticated"}, // without an agency
		{map[string]any{"role": "admin", "agency_id": 7, "aud": "another"}, "unauthenticated"},
	} {
		w.issuer.set(func() { w.issuer.claims = c.claims })
		back, attempt := w.begin(s)
		_, cookies, err := s.Finish(callback(back, attempt), "192.0.2.1")
		if len(cookies) > 0 {
			t.Errorf("the claims %v were accepted", c.claims)
		}
		wants(t, err, c.code, "")
	}
}

func TestAuthorization_RenewsTokensOnceForAllInstances(t *testing.T) {
	w := newWorld(t)
	w.issuer.set(func() { w.issuer.lifetime = 10 * time.Minute })
	instances := []*signin.SignIn{w.instance(), w.instance()}
	cookie := w.signIn(instances[0])
	first, err := instances[0].Authorization(request(http.MethodGet, cookie))
	require.NoError(t, err)
	// Once while the token is still valid, and once after it expired.
	for _, ahead := range []time.Duration{9*time.Minute + 45*time.Second, 25 * time.Minute} {
		w.ahead.Store(int64(ahead))
		before := 0
		// The library counts lifetimes by the real clock.
		w.issuer.set(func() { before, w.issuer.lifetime = w.issuer.renewals, ahead+10*time.Minute })
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				if _, err := instances[i%2].Authorization(request(http.MethodGet, cookie)); err != nil {
					t.Errorf("clock %v ahead: %v", ahead, err)
				}
			})
		}
		all.Wait()
		w.issuer.set(func() {
			if w.issuer.renewals != before+1 {
				t.Errorf("clock %v ahead: the token was renewed %d times, want once", ahead, w.issuer.renewals-before)
			}
		})
	}
	last, err := instances[1].Authorization(request(http.MethodGet, cookie))
	if err != nil || last == first {
		t.Errorf("the token is still the first one, %v", err)
	}
}

func TestAuthorization_SessionSurvivesAnUnavailableIssuer(t *testing.T) {
	w := newWorld(t)
	w.issuer.set(func() { w.issuer.lifetime = 10 * time.Minute })
	s := w.instance()
	cookie := w.signIn(s)
	w.issuer.set(func() { w.issuer.status = 503 })
	w.ahead.Store(int64(9*time.Minute + 45*time.Second))
	assert.NoError(t, use(s, cookie), "with a valid token")
	w.ahead.Store(int64(11 * time.Minute))
	if err := use(s, cookie); !isUnavailable(err) {
		t.Errorf("with an expired token: %v, want unavailable", err)
	}
	w.issuer.set(func() { w.issuer.status = 0 })
	assert.NoError(t, use(s, cookie), "after the issuer recovered")
	w.issuer.set(func() { clear(w.issuer.refresh) }) // signed out or disabled at the issuer
	w.ahead.Store(int64(30 * time.Minute))
	for range 2 {
		wants(t, use(s, cookie), "unauthenticated", "Sign in again")
	}
	if err := w.store.Delete(t.Context(), "attempts"); err != nil { // the key that seals them
		t.Fatal(err)
	}
	w.store.Expire(":used")
	assert.DeepEqual(t, w.store.String(), "", "the ended session is still stored")
}

func TestAuthorization_EndsAfterTheLongestLifetime(t *testing.T) {
	w, s := newSignIn(t)
	cookie := w.signIn(s)
	w.ahead.Store(int64(signin.DefaultLifetime + time.Second))
	wants(t, use(s, cookie), "unauthenticated", "Sign in again")
}

func TestAuthorization_RefusesRequestsFromAnotherSite(t *testing.T) {
	w, s := newSignIn(t)
	cookie := w.signIn(s)
	for _, c := range []struct {
		method string
		header map[string]string
		ok     bool
	}{
		{"POST", map[string]string{"Sec-Fetch-Site": "same-origin"}, true},
		{"POST", map[string]string{"Origin": "https://fleet.example.com"}, true},
		{"POST", map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"}, false},
		{"PUT", map[string]string{"Sec-Fetch-Site": "same-site", "Origin": "https://blog.example.com"}, false},
		{"DELETE", map[string]string{"Origin": "https://evil.example"}, false},
		// Reads may act: one of a status can query the vehicle.
		{"GET", map[string]string{"Sec-Fetch-Site": "same-origin"}, true},
		{"GET", map[string]string{"Sec-Fetch-Site": "none"}, true},
		{"GET", nil, true},
		// A proxy may have a password of its users.
		{"GET", map[string]string{"Authorization": "Basic b3Bz"}, true},
		{"GET", map[string]string{"Sec-Fetch-Site": "cross-site"}, false},
		{"GET", map[string]string{"Sec-Fetch-Site": "same-site"}, false},
		{"GET", map[string]string{"Origin": "https://blog.example.com"}, false},
	} {
		r := request(c.method, cookie)
		for name, value := range c.header {
			r.Header.Set(name, value)
		}
		header, err := s.Authorization(r)
		if c.ok && (err != nil || header == "") {
			t.Errorf("%s with %v: header %q, %v", c.method, c.header, header, err)
		}
		if !c.ok {
			wants(t, err, "forbidden", "another site")
			if _, _, _, err := s.End(r); err == nil {
				t.Errorf("%s with %v: the session was ended", c.method, c.header)
			}
		}
	}
}

func TestEnd_EndsTheSessionAtEveryInstance(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	cookie := w.signIn(s)
	of, page, cookies, err := s.End(request(http.MethodPost, cookie))
	if err != nil || of.Actor.Subject == "" || len(cookies) != 2 || cookies[0].Name != cookie.Name || cookies[0].MaxAge >= 0 {
		t.Errorf("End = %+v, cookies %v, %v", of, cookies, err)
	}
	out, err := url.Parse(page)
	if err != nil || !strings.HasPrefix(page, w.issuer.URL+"/out?") || out.Query().Get("x") != "1" ||
		out.Query().Get("id_token_hint") == "" ||
		out.Query().Get("post_logout_redirect_uri") != public+"/console/" {
		t.Errorf("sign-out page of the issuer %q, %v", page, err)
	}
	wants(t, use(other, cookie), "unauthenticated", "Sign in again")
	if of, _, cookies, err := s.End(request(http.MethodPost, cookie)); of.Actor.Subject != "" || len(cookies) != 2 || err != nil {
		t.Errorf("a second End = %+v, cookies %v, %v", of, cookies, err)
	}
}

func TestRedeem_SignsInUntilTheOfferEnds(t *testing.T) {
	w, s := newSignIn(t)
	token := w.issuer.sign(map[string]any{
		"iss": w.issuer.URL, "aud": audience, "sub": "dev", "role": "admin", "agency_id": 7,
		"exp": time.Now().Add(time.Hour).Unix(),
	})
	code, err := s.Offer(t.Context(), token, time.Minute)
	require.NoError(t, err)
	if _, err := s.Authorization(request(http.MethodGet, &http.Cookie{Name: "__Host-motorpool-6ebd58bd", Value: code})); err == nil {
		t.Error("a code was accepted as a cookie")
	}
	secrets := map[string]bool{}
	for range 3 {
		id, cookies, err := s.Redeem(t.Context(), code)
		require.NoError(t, err)
		secrets[cookies[0].Value] = true
		if header, err := s.Authorization(request(http.MethodGet, cookies[0])); err != nil || header != "Bearer "+token ||
			id.Actor.Subject != "dev" {
			t.Errorf("header %q, identity %+v, %v", header, id, err)
		}
	}
	assert.DeepEqual(t, len(secrets), 3, "two browsers have the same session")
	late := must(s.Offer(t.Context(), token, time.Minute))
	w.ahead.Store(int64(2 * time.Minute))
	_, _, err = s.Redeem(t.Context(), late)
	wants(t, err, "unauthenticated", "ended")
	_, _, err = s.Redeem(t.Context(), "x")
	wants(t, err, "unauthenticated", "complete")
}

func TestSignIn_IsUnavailableWithoutItsServers(t *testing.T) {
	w, s := newSignIn(t)
	cookie := w.signIn(s)
	w.store.Break(signintest.Unavailable{})
	if err := use(s, cookie); !isUnavailable(err) {
		t.Errorf("without the store: %v, want unavailable", err)
	}
	w.store.Break(nil)
	cold := w.instance()
	w.issuer.Close()
	if _, _, err := cold.Begin(t.Context()); !isUnavailable(err) {
		t.Errorf("without the issuer: %v, want unavailable", err)
	}
	address, _ := url.Parse(public)
	without, err := signin.New(signin.Config{Store: w.store, URL: address})
	require.NoError(t, err)
	_, _, err = without.Begin(t.Context())
	wants(t, err, "unauthenticated", "docs/access.md")
}
