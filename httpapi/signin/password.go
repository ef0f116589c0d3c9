package signin

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/operators"
	"motorpool/telematics"
)

// Operators stores the people who sign in with a password. Its errors are as those of Store.
type Operators interface {
	// ByName returns the operator with a name; false: there is none.
	ByName(ctx context.Context, name string) (operators.Operator, bool, error)
	// OfSession returns the operator of a session, or false if the session has ended.
	OfSession(ctx context.Context, id, epoch int64) (operators.Operator, bool, error)
	// ByLink returns the operator who has a link; false: the link was used, or has ended.
	ByLink(ctx context.Context, digest []byte) (operators.Operator, bool, error)
	// SetPassword sets the password of the operator who has a link, and uses the link up: of
	// concurrent calls one gets the operator.
	SetPassword(ctx context.Context, digest []byte, password string, by telematics.Author) (operators.Operator, bool, error)
	// Any reports whether there is an operator.
	Any(ctx context.Context) (bool, error)
}

// Limiter counts attempts against limits, in their order up to the first that has too little left,
// for all instances together.
type Limiter interface {
	Take(ctx context.Context, limits ...telematics.Limit) ([]telematics.Quota, error)
}

// RateLimited is the code of an attempt over a limit.
const RateLimited telematics.Code = "rate_limited"

// What a person who signs in reads. There is one sentence for a name that does not exist, one
// without a password, and a wrong password.
const (
	NotRight   = "The name or the password is wrong."
	LinkUsed   = "This link was used, or has ended. Ask for a new one: motorpool operator password NAME."
	NotTheSame = "The two passwords differ."
	ManyTries  = "Too many attempts. Try again later."
	OtherSite  = "This request came from a page of another site, so it was refused."
	// ServerNeeded is also the API's sentence.
	ServerNeeded = "A server that this request needs is not available; try again."
	NoOperators  = "No account exists yet. Add the first one on the server: " +
		`motorpool operator add NAME --role admin --scope "all_agencies halt agency_keys"`
)

// ErrPassword is the cause of an error for which the person can choose another password.
var ErrPassword = errors.New("the new password does not do")

var errNoOperators = refuse(NotRight, errors.New("people sign in at the issuer"))

// HasPasswords reports whether people sign in with a password: never where there is an issuer.
func (s *SignIn) HasPasswords() bool { return s.issuer == nil && s.Operators != nil }

// HasOperators reports whether there is an operator. It reads that once a second at most, and never
// again after there was one: callers need no session. Its error is that of Operators.
func (s *SignIn) HasOperators(ctx context.Context) (bool, error) {
	s.asking.Lock()
	defer s.asking.Unlock()
	now := s.Now()
	if s.hasOperators || now.Sub(s.askedAt).Abs() < time.Second {
		return s.hasOperators, nil
	}
	has, err := s.Operators.Any(ctx)
	if err == nil {
		s.hasOperators, s.askedAt = has, now
	}
	return has, err
}

// Enter begins the session of a person with a name and a password, whose request came from an
// address. It returns the cookies to set. Its error is as that of Identify.
//
// A browser that has signed in before counts by itself. So who guesses passwords, from any number
// of addresses, locks out no person who uses the same browser as before.
func (s *SignIn) Enter(r *http.Request, address, typed, password string) (id auth.Identity, cookies []*http.Cookie, err error) {
	defer func() { s.counted.count(err) }()
	if !s.HasPasswords() {
		return id, nil, errNoOperators
	}
	if err := s.checkOrigin(r); err != nil {
		return id, nil, err
	}
	name, ok := operators.ParseName(typed)
	if !ok {
		name = "" // no operator has it, which takes as long to find as of another
	}
	known, err := s.browserOf(r)
	if err != nil {
		return id, nil, err
	}
	places := s.newBrowsers
	limits := []telematics.Limit{addressLimit(address), {Key: "sign-in:name:" + name, Rate: nameRate, Cost: 1}}
	if known.has(name) {
		places = s.knownBrowsers
		limits = []telematics.Limit{{Key: "sign-in:browser:" + known.ID + ":" + name, Rate: nameRate, Cost: 1}}
	}
	if err := s.take(r.Context(), limits...); err != nil {
		return id, nil, err
	}
	operator, found, err := s.Operators.ByName(r.Context(), name)
	if err != nil {
		return id, nil, err
	}
	hash := operators.Unmatched
	if found && operator.Password != "" {
		hash = operator.Password
	}
	right := false
	if err := places.run(r.Context(), func() { right = s.verify(hash, password) }); err != nil {
		return id, nil, err
	}
	if !right {
		cause := errors.New("there is no operator of the name")
		if found {
			cause = fmt.Errorf("wrong password of operator %s", operator.Name)
		}
		return id, nil, refuse(NotRight, cause)
	}
	return s.enter(r.Context(), operator, known)
}

// LinkOwner returns the name of the operator who has the link with a code. Its error is as that of
// Identify.
func (s *SignIn) LinkOwner(r *http.Request, address, code string) (string, error) {
	operator, _, err := s.linkOwner(r.Context(), address, code)
	return operator.Name, err
}

func (s *SignIn) linkOwner(ctx context.Context, address, code string) (operators.Operator, []byte, error) {
	digest, ok := operators.Digest(code)
	if !ok || !s.HasPasswords() {
		return operators.Operator{}, nil, refuse(LinkUsed, nil)
	}
	if err := s.take(ctx, addressLimit(address)); err != nil {
		return operators.Operator{}, nil, err
	}
	operator, found, err := s.Operators.ByLink(ctx, digest)
	if err == nil && !found {
		err = refuse(LinkUsed, nil)
	}
	return operator, digest, err
}

// SetPassword sets the password of the operator who has a link, and begins a session. by is the
// request; its actor becomes the operator. Its error is as that of Identify; ErrPassword is the
// cause where the person can choose another password.
func (s *SignIn) SetPassword(
	r *http.Request, address, code, password, repeated string, by telematics.Author,
) (id auth.Identity, cookies []*http.Cookie, err error) {
	defer func() { s.counted.count(err) }()
	if err := s.checkOrigin(r); err != nil {
		return id, nil, err
	}
	operator, digest, err := s.linkOwner(r.Context(), address, code)
	if err != nil {
		return id, nil, err
	}
	problem := operators.CheckPassword(operator.Name, password)
	if problem == "" && password != repeated {
		problem = NotTheSame
	}
	if problem != "" {
		return id, nil, refuse(problem, ErrPassword)
	}
	known, err := s.browserOf(r)
	if err != nil {
		return id, nil, err
	}
	var hash string
	if err := s.knownBrowsers.run(r.Context(), func() { hash = operators.HashPassword(password) }); err != nil {
		return id, nil, err
	}
	by.Actor = operator.Actor()
	operator, set, err := s.Operators.SetPassword(r.Context(), digest, hash, by)
	if err == nil && !set {
		err = refuse(LinkUsed, errors.New("another request has used the link"))
	}
	if err != nil {
		return id, nil, err
	}
	return s.enter(r.Context(), operator, known)
}

// enter begins the session of an operator. The cookie always has a new secret, whatever the browser
// has sent.
func (s *SignIn) enter(ctx context.Context, o operators.Operator, known browser) (auth.Identity, []*http.Cookie, error) {
	id, err := identityOf(o, s.Now().Add(s.Lifetime))
	if err != nil {
		return id, nil, err
	}
	remembered, err := s.remember(ctx, known, o.Name)
	if err != nil {
		return id, nil, err
	}
	by, err := s.begin(ctx, session{Operator: o.ID, Epoch: o.Epoch})
	if err != nil {
		return id, nil, err
	}
	return id, []*http.Cookie{s.newCookie(s.cookie, by.String(), http.SameSiteStrictMode), remembered}, nil
}

// ofOperator returns the identity of an operator's session. It reads the operator each time, so
// that a session ends, and loses rights, with the next request.
func (s *SignIn) ofOperator(ctx context.Context, open session) (auth.Identity, error) {
	if !s.HasPasswords() {
		return auth.Identity{}, errEnded
	}
	operator, found, err := s.Operators.OfSession(ctx, open.Operator, open.Epoch)
	switch {
	case err != nil:
		return auth.Identity{}, err
	case !found:
		return auth.Identity{}, errEnded
	}
	return identityOf(operator, open.End)
}

var levels = map[operators.Role]auth.Level{
	operators.Viewer: auth.Viewer, operators.Moves: auth.Operator, operators.Admin: auth.Administrator,
}

// identityOf returns an operator as its access token would.
func identityOf(o operators.Operator, until time.Time) (auth.Identity, error) {
	id := auth.Identity{Actor: o.Actor(), Level: levels[o.Role], Scopes: auth.Scopes(o.Scopes), Until: until}
	if id.Actor.Agency == 0 && !id.Scopes.Has(auth.ScopeAllAgencies) {
		return auth.Identity{}, refuse(NotRight, fmt.Errorf("operator %s has no agency, nor the scope %s", o.Name, auth.ScopeAllAgencies))
	}
	return id, nil
}

func addressLimit(address string) telematics.Limit {
	return telematics.Limit{Key: "sign-in:address:" + network(address), Rate: addressRate, Cost: 1}
}

// take counts an attempt. Where attempts cannot be counted, none is made.
func (s *SignIn) take(ctx context.Context, limits ...telematics.Limit) error {
	quotas, err := s.Limiter.Take(context.WithoutCancel(ctx), limits...)
	if err != nil {
		return err
	}
	for _, quota := range quotas {
		if quota.Over {
			return &telematics.Error{Code: RateLimited, Retryable: true, RetryAfter: quota.Reset, Message: ManyTries}
		}
	}
	return nil
}

// hashing bounds the concurrent computations of Argon2id, each of which takes 19 MiB and a
// processor.
type hashing chan struct{}

// run runs a computation, or returns errBusy where none ends in time.
func (h hashing) run(ctx context.Context, compute func()) error {
	timeout := time.NewTimer(hashWait)
	defer timeout.Stop()
	select {
	case h <- struct{}{}:
		defer func() { <-h }()
		compute()
		return nil
	case <-timeout.C:
	case <-ctx.Done():
	}
	return errBusy
}

// browser is in a cookie of a browser in which people have signed in. It is a right to attempts,
// and to nothing else.
type browser struct {
	ID    string    `json:"id"`
	Names []string  `json:"names"` // of the people, the last one first
	Until time.Time `json:"until"`
}

func (b browser) has(name string) bool { return b.ID != "" && slices.Contains(b.Names, name) }

// browserOf returns the browser of a request; the zero value where it is not known.
func (s *SignIn) browserOf(r *http.Request) (known browser, err error) {
	cookie, err := r.Cookie(s.known)
	if err != nil {
		return known, nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return known, nil
	}
	key, err := s.browserKey(r.Context())
	if err != nil {
		return known, err
	}
	if key.open(sealed, &known) != nil || !s.Now().Before(known.Until) {
		return browser{}, nil
	}
	return known, nil
}

// remember returns the cookie of a browser in which one more person has signed in.
func (s *SignIn) remember(ctx context.Context, known browser, name string) (*http.Cookie, error) {
	if known.ID == "" {
		known.ID = rand.Text()
	}
	names := append([]string{name}, slices.DeleteFunc(slices.Clone(known.Names), func(n string) bool { return n == name })...)
	known.Names, known.Until = names[:min(len(names), browserNames)], s.Now().Add(browserFor)
	key, err := s.browserKey(ctx)
	if err != nil {
		return nil, err
	}
	sealed, err := key.seal(known)
	if err != nil {
		return nil, err
	}
	cookie := s.newCookie(s.known, base64.RawURLEncoding.EncodeToString(sealed), http.SameSiteStrictMode)
	cookie.MaxAge = int(browserFor.Seconds())
	return cookie, nil
}

// browserKey returns the secret that all instances seal these cookies with. It opens no attempt.
func (s *SignIn) browserKey(ctx context.Context) (secret, error) {
	key, err := s.attemptKey(ctx)
	if err != nil {
		return secret{}, err
	}
	return secret(key.derive("browsers")), nil
}
