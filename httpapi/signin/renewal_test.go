package signin_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"motorpool/httpapi/signin"
	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// renewing is a request that renews a session, and that the issuer has not answered yet.
type renewing struct {
	answer func()             // lets the issuer answer
	result <-chan error       // of the request
	hangUp context.CancelFunc // of its browser
}

// startRenewal makes a request whose session's token has expired, and returns when the issuer has
// it.
func (w *world) startRenewal(s *signin.SignIn, cookie *http.Cookie) renewing {
	w.t.Helper()
	asked, answer, result := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	w.issuer.set(func() {
		w.issuer.before = func(string) {
			w.issuer.set(func() { w.issuer.before = nil })
			close(asked)
			<-answer
		}
	})
	ctx, hangUp := context.WithCancel(context.WithoutCancel(w.t.Context()))
	w.t.Cleanup(hangUp)
	go func() {
		_, err := s.Authorization(request(http.MethodGet, cookie).WithContext(ctx))
		result <- err
	}()
	select {
	case <-asked:
	case <-time.After(time.Minute):
		w.t.Fatal("the issuer was not asked to renew")
	}
	return renewing{answer: func() { close(answer) }, result: result, hangUp: hangUp}
}

// signInShort signs in with a token that expires, and lets it expire.
func (w *world) signInShort(s *signin.SignIn) *http.Cookie {
	w.t.Helper()
	w.issuer.set(func() { w.issuer.lifetime = 10 * time.Minute })
	cookie := w.signIn(s)
	w.ahead.Store(int64(11 * time.Minute))
	w.issuer.set(func() { w.issuer.lifetime = time.Hour })
	return cookie
}

func TestEnd_WinsOverARenewalInFlight(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	cookie := w.signInShort(s)
	renewal := w.startRenewal(s, cookie)
	_, _, _, err := other.End(request(http.MethodPost, cookie))
	require.NoError(t, err)
	renewal.answer()
	wants(t, <-renewal.result, "unauthenticated", "Sign in again")
	for _, instance := range []*signin.SignIn{s, other} {
		wants(t, use(instance, cookie), "unauthenticated", "Sign in again")
	}
}

func TestRenewal_SurvivesABrowserThatHangsUp(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	cookie := w.signInShort(s)
	renewal := w.startRenewal(s, cookie)
	renewal.hangUp()
	renewal.answer()
	<-renewal.result //nolint:errcheck // it may fail: the session has ended
	assert.NoError(t, use(other, cookie), "the next request")
	w.issuer.set(func() {
		assert.DeepEqual(t, w.issuer.renewals, 1, "the issuer was asked")
	})
}

func TestRenewal_ThatIsLateDoesNotEndTheSession(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	cookie := w.signInShort(s)
	renewal := w.startRenewal(s, cookie)
	w.store.Expire(":renew")
	assert.NoError(t, use(other, cookie), "a request of the session")
	renewal.answer() // a refusal: the refresh token is used up
	assert.NoError(t, <-renewal.result, "the late request")
	assert.NoError(t, use(other, cookie), "the session has ended")
}

func TestRenewal_ReleasesOnlyItsOwnLock(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	cookie := w.signInShort(s)
	late := w.startRenewal(s, cookie)
	w.store.Expire(":renew")
	current := w.startRenewal(other, cookie)
	late.answer()
	<-late.result //nolint:errcheck // likewise
	assert.DeepEqual(t, strings.Count(w.store.String(), ":renew="), 1, "locks while a renewal is in flight")
	current.answer()
	<-current.result //nolint:errcheck // likewise
}

func TestRenewal_KeepsTokensThatItCannotVerify(t *testing.T) {
	w, s := newSignIn(t)
	cookie := w.signInShort(s)
	w.issuer.set(func() { w.issuer.lifetime = 0 }) // the answer does not say it
	w.issuer.replaceKey()                          // the service has not read the new one yet
	for _, ahead := range []time.Duration{0, time.Hour} {
		w.ahead.Add(int64(ahead))
		assert.NoError(t, use(s, cookie), "%v later", ahead)
	}
}

func TestRenewal_SurvivesAMomentWithoutTheStore(t *testing.T) {
	w, s := newSignIn(t)
	cookie := w.signInShort(s)
	renewal := w.startRenewal(s, cookie)
	w.store.Fail(2)
	renewal.answer()
	assert.NoError(t, <-renewal.result, "the request")
	assert.NoError(t, use(s, cookie), "the next request")
}

func TestRenewal_EndsASessionWhoseTokensBecomeAnotherPersons(t *testing.T) {
	for name, change := range map[string]func(*fakeIssuer){
		"access token": func(i *fakeIssuer) { i.claims = map[string]any{"role": "admin", "agency_id": 7, "sub": "mallory"} },
		"ID token":     func(i *fakeIssuer) { i.own = map[string]any{"sub": "mallory"} },
	} {
		w, s := newSignIn(t)
		cookie := w.signInShort(s)
		w.issuer.set(func() { change(w.issuer) })
		for range 2 {
			if err := use(s, cookie); err == nil {
				t.Errorf("%s of another person: accepted", name)
			}
		}
	}
}

func TestFinish_AccessTokenIsOfThePersonOfTheIDToken(t *testing.T) {
	role := func(more ...any) map[string]any {
		claims := map[string]any{"role": "operator", "agency_id": 7}
		for i := 0; i < len(more); i += 2 {
			claims[more[i].(string)] = more[i+1]
		}
		return claims
	}
	for name, c := range map[string]struct {
		access, own map[string]any
		ok          bool
	}{
		"another sub":                         {role("sub", "mallory"), nil, false},
		"another sub and oid":                 {role("sub", "mallory", "oid", "1"), map[string]any{"oid": "2"}, false},
		"another sub of one oid, as Entra ID": {role("sub", "zoe-at-the-api", "oid", "1"), map[string]any{"oid": "1"}, true},
		"hash of another token":               {role(), map[string]any{"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}, false},
	} {
		w, s := newSignIn(t)
		w.issuer.set(func() { w.issuer.claims, w.issuer.own = c.access, c.own })
		back, attempt := w.begin(s)
		if err := finish(s, back, attempt); c.ok != (err == nil) {
			t.Errorf("%s: %v, want accepted: %v", name, err, c.ok)
		}
	}
}

func TestFinish_NeedsTheIssuersNameWhereItIsAnnounced(t *testing.T) {
	for _, announced := range []bool{false, true} {
		w := newWorld(t)
		w.issuer.set(func() { w.issuer.namesIss = announced })
		s := w.instance()
		back, attempt := w.begin(s)
		query := back.Query()
		query.Del("iss")
		back.RawQuery = query.Encode()
		err := finish(s, back, attempt)
		if announced {
			wants(t, err, "unauthenticated", "not good")
		} else if err != nil {
			t.Errorf("an issuer that does not announce iss: %v", err)
		}
	}
}

// made returns the callback of an attempt that the service has not begun: its caller chose state,
// nonce and verifier.
func made(attempt *http.Cookie, value string) *http.Request {
	cookie := *attempt
	cookie.Value = value
	return callback(&url.URL{Path: "/auth/callback", RawQuery: "code=x&state=s"}, &cookie)
}

func TestFinish_MadeUpCallbacksReachNoIssuer(t *testing.T) {
	w, s := newSignIn(t)
	_, attempt, err := s.Begin(t.Context())
	require.NoError(t, err)
	plain := base64.RawURLEncoding.EncodeToString([]byte(`{"state":"s","nonce":"n","verifier":"v","until":"2200-01-01T00:00:00Z"}`))
	for _, value := range []string{plain, "", "x", strings.Repeat("A", 200), attempt.Value[:len(attempt.Value)-4] + "AAAA"} {
		_, _, err := s.Finish(made(attempt, value), "192.0.2.1")
		wants(t, err, "unauthenticated", "Sign in again")
	}
	w.issuer.set(func() {
		assert.DeepEqual(t, w.issuer.tokens, 0, "the issuer got")
	})
}

// One attempt takes one place of a slow issuer, however often and from wherever its callback comes.
func TestFinish_AttemptIsUsedOnceAtAllInstances(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	hang := make(chan struct{})
	w.issuer.set(func() { w.issuer.before = func(string) { <-hang } })
	back, attempt := w.begin(s)
	first := make(chan error, 1)
	go func() {
		_, _, err := s.Finish(callback(back, attempt), "192.0.2.1")
		first <- err
	}()
	for w.issuer.requests() == 0 {
		time.Sleep(time.Millisecond)
	}
	for range 20 {
		for _, instance := range []*signin.SignIn{s, other} {
			_, _, err := instance.Finish(callback(back, attempt), "192.0.2.2")
			wants(t, err, "unauthenticated", "used already")
		}
	}
	close(hang)
	assert.NoError(t, <-first, "the first callback")
	assert.DeepEqual(t, w.issuer.requests(), 1, "the issuer got")
}

// Only what ends a session by its protocol ends it. The rest is a fault of the issuer, or of how
// the service is registered there, after whose end the session goes on.
func TestRenewal_OnlyTheEndOfAGrantEndsTheSession(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		ends   bool
	}{
		{400, "invalid_grant", true},
		{401, "invalid_grant", true},
		{400, "interaction_required", true},
		{400, "login_required", true},
		{403, "access_denied", true},
		{400, "invalid_client", false},
		{401, "invalid_client", false},
		{400, "unauthorized_client", false}, //nolint:misspell // as OAuth spells it
		{400, "invalid_scope", false},
		{400, "invalid_request", false},
		{403, "", false},
		{404, "", false},
		{408, "", false},
		{429, "slow_down", false},
		{503, "temporarily_unavailable", false},
	} {
		w, s := newSignIn(t)
		cookie := w.signInShort(s)
		w.issuer.set(func() { w.issuer.status, w.issuer.code = c.status, c.code })
		w.ahead.Add(int64(time.Hour))
		err := use(s, cookie)
		if isUnavailable(err) == c.ends || err == nil {
			t.Errorf("%d %s: %v; want the session ended: %v", c.status, c.code, err, c.ends)
		}
		w.issuer.set(func() { w.issuer.status = 0 })
		if err = use(s, cookie); (err != nil) != c.ends {
			t.Errorf("%d %s, and mended: %v; want the session ended: %v", c.status, c.code, err, c.ends)
		}
	}
}

func TestFinish_EndsAnAttemptThatTookTooLong(t *testing.T) {
	w, s := newSignIn(t)
	back, attempt := w.begin(s)
	w.ahead.Store(int64(16 * time.Minute)) // the browser keeps the cookie all the same
	wants(t, finish(s, back, attempt), "unauthenticated", "too long")
}

func TestSignIns_ThatHangKeepNoOtherCallerFromTheIssuer(t *testing.T) {
	w, s := newSignIn(t)
	cookie := w.signInShort(s)
	hang := make(chan struct{})
	w.issuer.set(func() {
		w.issuer.before = func(grant string) {
			if grant == "authorization_code" {
				<-hang
			}
		}
	})
	hanging := func() *http.Request {
		back, attempt := w.begin(s)
		return callback(back, attempt)
	}
	results := make(chan error, 100)
	from := func(address string, times int) (busy int) {
		before := w.issuer.requests()
		for i := range times {
			caller := address
			if strings.HasSuffix(address, ":") { // all addresses of a caller with IPv6
				caller += strconv.Itoa(i)
			}
			attempt := hanging()
			go func() { _, _, err := s.Finish(attempt, caller); results <- err }()
		}
		deadline := time.After(time.Minute)
		for {
			select {
			case err := <-results:
				if !isUnavailable(err) {
					t.Errorf("a sign-in over the bound: %v, want unavailable", err)
				}
				busy++
			case <-deadline:
				t.Fatal("sign-ins neither hang nor fail")
			case <-time.After(time.Millisecond):
				if w.issuer.requests()-before+busy >= times {
					return busy
				}
			}
		}
	}
	if busy := from("2001:db8:0:1::", 40); busy < 30 || busy == 40 {
		t.Errorf("of 40 sign-ins of one caller %d were refused, want all but its share", busy)
	}
	assert.DeepEqual(t, from("192.0.2.1", 1), 0, "another address cannot sign in")
	from("192.0.2.2", 40)
	from("198.51.100.1", 40)
	assert.DeepEqual(t, from("203.0.113.1", 1), 1, "the sign-ins of all addresses together have no bound")
	assert.NoError(t, use(s, cookie), "a session was not renewed")
	if _, _, err := s.Begin(t.Context()); err != nil {
		t.Errorf("a sign-in cannot begin: %v", err)
	}
	close(hang)
}

func TestSessionEnded_FollowsTheSession(t *testing.T) {
	w := newWorld(t)
	s, other := w.instance(), w.instance()
	cookie := w.signIn(s)
	behindProxy := request(http.MethodGet, cookie)
	behindProxy.Header.Set("Authorization", "Basic b3Bz")
	ended := s.SessionEnded(behindProxy)
	if ended() {
		t.Error("the session has ended at its beginning")
	}
	_, _, _, err := other.End(request(http.MethodPost, cookie))
	require.NoError(t, err)
	if !ended() {
		t.Error("the session has not ended with the sign-out")
	}
	w.store.Fail(1)
	if ended() {
		t.Error("a session ends where the store is unavailable")
	}
	if s.SessionEnded(request(http.MethodGet)) != nil {
		t.Error("a request without a cookie has a session")
	}
}
