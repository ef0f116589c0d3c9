package signin_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/httpapi/signin"
	"motorpool/httpapi/signin/signintest"
	"motorpool/internal/assert"
	"motorpool/operators"
	"motorpool/telematics"
)

// tally counts attempts for all instances; nothing is given back.
type tally struct {
	mu    sync.Mutex
	taken map[string]int
	err   error
}

func (c *tally) Take(_ context.Context, limits ...telematics.Limit) (quotas []telematics.Quota, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, l := range limits {
		over := c.taken[l.Key]+l.Cost > l.Rate.Limit
		if !over {
			c.taken[l.Key] += l.Cost
		}
		quotas = append(quotas, telematics.Quota{Limit: l.Rate.Limit, Over: over, Reset: time.Minute})
		if over {
			break
		}
	}
	return quotas, c.err
}

// office is an installation without an issuer, of two instances, with the operator anna.
type office struct {
	t       *testing.T
	people  *signintest.People
	counted *tally
	store   *signintest.Sessions
	config  signin.Config
	s, s2   *signin.SignIn
	log     bytes.Buffer
	ahead   atomic.Int64
}

const goodPassword = "correct horse battery"

var goodHash = sync.OnceValue(func() string { return operators.HashPassword(goodPassword) })

func newOffice(t *testing.T) *office {
	t.Helper()
	o := &office{
		t: t, people: signintest.NewPeople(),
		counted: &tally{taken: map[string]int{}}, store: &signintest.Sessions{},
	}
	o.people.Set(operators.Operator{
		ID: 1, Name: "anna", Role: operators.Admin, Scopes: []string{"all_agencies", "halt"}, Password: goodHash(),
		Epoch: 1,
	})
	o.people.Set(operators.Operator{ID: 2, Name: "ben", Role: operators.Viewer, Agency: 7, Epoch: 1})
	address, _ := url.Parse(public)
	o.config = signin.Config{
		Store: o.store, URL: address, Operators: o.people, Limiter: o.counted, Log: slog.New(slog.NewTextHandler(&o.log, nil)),
		Now: func() time.Time { return time.Now().Add(time.Duration(o.ahead.Load())) },
	}
	o.s, o.s2 = o.instance(), o.instance()
	return o
}

func (o *office) instance() *signin.SignIn {
	o.t.Helper()
	s := must(signin.New(o.config))
	s.VerifyBy(verifyOnce)
	return s
}

var verified sync.Map // by hash and password

// verifyOnce compares as the service does, each password and hash once.
func verifyOnce(hash, password string) bool {
	is, known := verified.Load(hash + password)
	if !known {
		is, _ = verified.LoadOrStore(hash+password, operators.VerifyPassword(hash, password))
	}
	return is.(bool)
}

// enter returns the cookies of a person who signs in.
func (o *office) enter(name, password string, cookies ...*http.Cookie) []*http.Cookie {
	o.t.Helper()
	id, set, err := o.s.Enter(form(cookies...), "192.0.2.1", name, password)
	if err != nil || id.Actor.Subject != strings.ToLower(name) {
		o.t.Fatalf("Enter = %+v, %v", id, err)
	}
	return set
}

// form returns a request as a page of the service sends it.
func form(cookies ...*http.Cookie) *http.Request {
	r := request(http.MethodPost, cookies...)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return r
}

func (o *office) isIn(s *signin.SignIn, cookie *http.Cookie) bool {
	o.t.Helper()
	_, has, err := s.Identify(request(http.MethodGet, cookie))
	if err != nil {
		wants(o.t, err, "unauthenticated", "Sign in again")
	}
	return has && err == nil
}

func TestEnter_GivesASessionWithTheRightsOnRecord(t *testing.T) {
	o := newOffice(t)
	cookie := o.enter("Anna", goodPassword)[0]
	if !cookie.HttpOnly || !cookie.Secure || cookie.SameSite != http.SameSiteStrictMode || !strings.HasPrefix(cookie.Name, "__Host-") {
		t.Errorf("cookie %s", cookie)
	}
	rights := func(level auth.Level, agency telematics.AgencyID, scope string, has bool) {
		t.Helper()
		id, ok, err := o.s2.Identify(request(http.MethodGet, cookie))
		if err != nil || !ok || id.Level != level || id.Actor.Agency != agency || id.Actor.Role != telematics.Admin ||
			id.Scopes.Has(scope) != has {
			t.Errorf("identity %+v, %v, %v", id, ok, err)
		}
	}
	rights(auth.Administrator, 0, auth.ScopeHalt, true)
	o.people.Set(operators.Operator{ID: 1, Name: "anna", Role: operators.Viewer, Agency: 7, Epoch: 1})
	rights(auth.Viewer, 7, auth.ScopeHalt, false)
	// A record without an agency and without the scope opens nothing.
	o.people.Set(operators.Operator{ID: 1, Name: "anna", Role: operators.Admin, Epoch: 1})
	if id, _, err := o.s2.Identify(request(http.MethodGet, cookie)); err == nil {
		t.Errorf("an operator of no agency is %+v", id)
	}
	if strings.Contains(o.store.String(), "anna") {
		t.Error("the store shows whose session it has")
	}
}

func TestEnter_ASessionEndsWithItsOperator(t *testing.T) {
	for name, end := range map[string]func(*office){
		"removed": func(o *office) { o.people.Remove("anna") },
		"removed and added": func(o *office) {
			o.people.Set(operators.Operator{ID: 3, Name: "anna", Role: operators.Admin, Agency: 1, Epoch: 1})
		},
		"has another password": func(o *office) {
			o.people.Set(operators.Operator{ID: 1, Name: "anna", Role: operators.Admin, Agency: 1, Epoch: 2})
		},
		"signed out": func(o *office) {
			id, page, _, err := o.s.End(form(o.enter("anna", goodPassword)[0]))
			if err != nil || page != "" || id.Actor.Subject != "anna" {
				o.t.Errorf("End = %+v, %q, %v", id, page, err)
			}
		},
		"after its time": func(o *office) { o.ahead.Store(int64(signin.DefaultLifetime)) },
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice(t)
			cookie := o.enter("anna", goodPassword)[0]
			ended := o.s2.SessionEnded(request(http.MethodGet, cookie))
			if !o.isIn(o.s2, cookie) || ended() {
				t.Fatal("not signed in")
			}
			end(o)
			if want := name == "signed out"; o.isIn(o.s2, cookie) != want || ended() == want {
				t.Errorf("the session goes on: %v", !want)
			}
		})
	}
}

// The answer, and the work before it, which takes the time, are the same whatever the name.
func TestEnter_AnswersEqually(t *testing.T) {
	o := newOffice(t)
	var work []string
	o.s.VerifyBy(func(hash, _ string) bool {
		parts := strings.Split(hash, "$")
		work = append(work, strings.Join(parts[:min(4, len(parts))], "$"))
		return false
	})
	for _, name := range []string{"anna", "ben", "eve", "no name at all!", "\x00", strings.Repeat("long", 1000)} {
		work = nil
		_, cookies, err := o.s.Enter(form(), "192.0.2.1", name, "wrong horse battery")
		if wants(t, err, "unauthenticated", signin.NotRight); cookies != nil {
			t.Errorf("%s: cookies %v", name, cookies)
		}
		assert.DeepEqual(t, o.people.Reads(), 1, "%s: reads", name)
		assert.DeepEqual(t, work, []string{"$argon2id$v=19$m=19456,t=2,p=1"}, "%s: hashes", name)
	}
	for key := range o.counted.taken {
		if len(key) > 100 || strings.Contains(key, "!") {
			t.Errorf("an attempt is counted as %q", key)
		}
	}
	if _, _, err := o.s.Enter(form(), "192.0.2.1", "ben", ""); err == nil {
		t.Error("an operator without a password is in")
	}
}

// Who guesses passwords is stopped, from one address or from many, at all instances, and the
// colleague whose name it is signs in all the same where she did before.
func TestEnter_GuessesAreLimitedAndLockOutNoColleague(t *testing.T) {
	o := newOffice(t)
	hers := o.enter("anna", goodPassword)
	guess := func(s *signin.SignIn, address, name string) bool {
		_, _, err := s.Enter(form(), address, name, "wrong horse battery")
		if err == nil {
			t.Fatal("guessed")
		}
		var refusal *telematics.Error
		return asRefusal(err, &refusal) && refusal.Code == signin.RateLimited && refusal.RetryAfter > 0
	}
	tries := 0
	for ; tries < 30 && !guess([]*signin.SignIn{o.s, o.s2}[tries%2], fmt.Sprintf("203.0.113.%d", tries), "anna"); tries++ {
	}
	if tries != 9 { // and one was hers
		t.Errorf("%d guesses from many addresses, want 9", tries)
	}
	if _, _, err := o.s.Enter(form(), "192.0.2.1", "anna", goodPassword); err == nil {
		t.Error("an unknown browser is not limited")
	}
	if !o.isIn(o.s2, hers[0]) {
		t.Error("guesses have ended her session")
	}
	o.enter("anna", goodPassword, hers[1])
	if _, _, err := o.s.Enter(form(hers[1]), "192.0.2.1", "eve", goodPassword); err == nil || isLimited(err) {
		t.Errorf("another name in her browser: %v", err)
	}
	// Her browser gives no further guesses either.
	tries = 0
	for ; tries < 30; tries++ {
		if _, _, err := o.s.Enter(form(hers[1]), "192.0.2.1", "anna", "wrong horse battery"); isLimited(err) {
			break
		}
	}
	assert.DeepEqual(t, tries, 9, "guesses in her browser")
	tries = 0
	for ; tries < 50 && !guess(o.s, "2001:db8::1", fmt.Sprintf("name%d", tries)); tries++ {
	}
	assert.DeepEqual(t, tries, 30, "guesses of names from an address")
	if !guess(o.s2, "2001:db8::2", "name99") {
		t.Error("a neighbour address of the same network is not limited")
	}
}

func asRefusal(err error, refusal **telematics.Error) bool {
	return errors.As(err, refusal)
}

func isLimited(err error) bool {
	var refusal *telematics.Error
	return asRefusal(err, &refusal) && refusal.Code == signin.RateLimited
}

func TestEnter_WhatIsNotCountedIsNotTried(t *testing.T) {
	o := newOffice(t)
	o.counted.err = signintest.Unavailable{}
	if _, _, err := o.s.Enter(form(), "192.0.2.1", "anna", goodPassword); !isUnavailable(err) || o.people.Reads() != 0 {
		t.Errorf("without the limits: %v", err)
	}
	if _, _, err := o.s.SetPassword(form(), "192.0.2.1", o.people.NewLink("ben"), goodPassword, goodPassword,
		telematics.Author{}); !isUnavailable(err) {
		t.Errorf("a link without the limits: %v", err)
	}
}

// A cookie that someone has planted in a browser is worth nothing before a sign-in, and after it.
func TestEnter_TheSecretIsNew(t *testing.T) {
	o := newOffice(t)
	planted := &http.Cookie{Name: "__Host-motorpool-6ebd58bd", Value: strings.Repeat("A", 43)}
	set := o.enter("anna", goodPassword, planted, &http.Cookie{Name: "__Host-motorpool-6ebd58bd-browser", Value: "AAAA"})
	if set[0].Value == planted.Value || o.isIn(o.s, planted) {
		t.Error("the planted cookie is her session")
	}
	if again := o.enter("anna", goodPassword, set...); again[0].Value == set[0].Value {
		t.Error("two sessions have one cookie")
	}
	if o.isIn(o.s, &http.Cookie{Name: planted.Name, Value: set[1].Value}) {
		t.Error("the cookie of the browser is a session")
	}
}

func TestEnter_OfAnotherSiteIsNoAttempt(t *testing.T) {
	o := newOffice(t)
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "https://evil.example"} {
		r := request(http.MethodPost)
		r.Header.Set(name, value)
		_, cookies, err := o.s.Enter(r, "192.0.2.1", "anna", goodPassword)
		if wants(t, err, "forbidden", "another site"); cookies != nil || len(o.counted.taken) != 0 {
			t.Errorf("%s: cookies %v, counted %v", value, cookies, o.counted.taken)
		}
		_, cookies, err = o.s.SetPassword(r, "192.0.2.1", o.people.NewLink("ben"), goodPassword, goodPassword, telematics.Author{})
		if wants(t, err, "forbidden", "another site"); cookies != nil || o.people.Links() == 0 {
			t.Errorf("%s sets a password: %v", value, cookies)
		}
	}
}

func TestSetPassword_UsesALinkOnce(t *testing.T) {
	o := newOffice(t)
	code := o.people.NewLink("ben")
	set := func(s *signin.SignIn, password, repeated string) ([]*http.Cookie, error) {
		_, cookies, err := s.SetPassword(form(), "192.0.2.1", code, password, repeated, telematics.Author{})
		return cookies, err
	}
	for range 2 { // a program that previews the link uses nothing up
		if name, err := o.s.LinkOwner(request(http.MethodGet), "192.0.2.1", code); name != "ben" || err != nil {
			t.Errorf("LinkOwner = %q, %v", name, err)
		}
	}
	for password, problem := range map[string]string{"short": operators.TooShort, "ben and his long password": "",
		"correct horse ben 1": ""} {
		if problem == "" {
			problem = operators.HasName
		}
		_, err := set(o.s, password, password)
		wants(t, err, "unauthenticated", problem)
	}
	_, err := set(o.s, goodPassword, goodPassword+" ")
	wants(t, err, "unauthenticated", signin.NotTheSame)
	var in atomic.Int64
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			cookies, err := set([]*signin.SignIn{o.s, o.s2}[i%2], goodPassword, goodPassword)
			if err != nil {
				wants(t, err, "unauthenticated", signin.LinkUsed)
			} else if in.Add(1); !o.isIn(o.s, cookies[0]) {
				t.Error("not signed in by the link")
			}
		})
	}
	all.Wait()
	assert.DeepEqual(t, in.Load(), 1, "the link has signed in")
	_, err = set(o.s, goodPassword, goodPassword)
	wants(t, err, "unauthenticated", signin.LinkUsed)
	_, err = o.s.LinkOwner(request(http.MethodGet), "192.0.2.1", "x")
	wants(t, err, "unauthenticated", signin.LinkUsed)
	assert.DeepEqual(t, o.people.By().Actor, telematics.Actor{Subject: "ben", Role: telematics.Admin, Agency: 7}, "who set the password")
	o.enter("ben", goodPassword)
}

func TestEnter_HashesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := newOffice(t)
		hers := o.enter("anna", goodPassword)
		o.s.OccupyNewBrowsers()
		began := time.Now()
		if _, _, err := o.s.Enter(form(), "192.0.2.1", "anna", goodPassword); !isUnavailable(err) || time.Since(began) > 10*time.Second {
			t.Errorf("without a place: %v after %v", err, time.Since(began))
		}
		o.enter("anna", goodPassword, hers[1]) // a flood of new browsers does not delay hers
	})
}

func TestEnter_IsOffWithAnIssuer(t *testing.T) {
	o := newOffice(t)
	cookie, link := o.enter("anna", goodPassword)[0], o.people.NewLink("ben")
	o.config.Issuer = signin.IssuerConfig{URL: "https://login.example.com", ClientID: "console"}
	s := o.instance()
	if s.HasPasswords() || o.isIn(s, cookie) || !s.SessionEnded(request(http.MethodGet, cookie))() {
		t.Error("an operator is in although people sign in at the issuer")
	}
	_, _, err := s.Enter(form(), "192.0.2.1", "anna", goodPassword)
	wants(t, err, "unauthenticated", signin.NotRight)
	_, _, err = s.SetPassword(form(), "192.0.2.1", link, goodPassword, goodPassword, telematics.Author{})
	wants(t, err, "unauthenticated", signin.LinkUsed)
}

// The page is for anyone, so it must not cost a read of Postgres each time.
func TestHasOperators_IsReadOnceASecond(t *testing.T) {
	o := newOffice(t)
	o.people.Remove("anna")
	o.people.Remove("ben")
	has := func(want bool, reads int) {
		t.Helper()
		for range 5 {
			if got, err := o.s.HasOperators(t.Context()); got != want || err != nil {
				t.Errorf("HasOperators = %v, %v", got, err)
			}
		}
		assert.DeepEqual(t, o.people.Reads(), reads, "reads")
	}
	has(false, 1)
	o.people.Set(operators.Operator{ID: 1, Name: "anna", Role: operators.Viewer, Agency: 7, Epoch: 1})
	o.ahead.Store(int64(2 * time.Second))
	has(true, 1)
	o.ahead.Store(int64(time.Hour))
	has(true, 0)
}
