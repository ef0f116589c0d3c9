package signin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/httpapi/auth"
	"motorpool/operators"
	"motorpool/telematics"
)

// Config assembles a SignIn. Store, Tokens and URL are required.
type Config struct {
	Store  Store
	Tokens *auth.Tokens
	// URL is where browsers reach the service, such as https://fleet.example.com/motorpool.
	URL *url.URL
	// Issuer is where people sign in. Without its URL, they sign in with a password.
	Issuer IssuerConfig
	// Operators are the people who sign in with a password, and Limiter counts their attempts.
	// Without Operators and without an issuer, only a code of Offer begins a session.
	Operators Operators
	Limiter   Limiter
	Metrics   prometheus.Registerer // Defaults to none.

	Lifetime time.Duration    // of a session, at most. Defaults to DefaultLifetime
	Log      *slog.Logger     // Defaults to slog.Default().
	Now      func() time.Time // Defaults to time.Now.
}

// SignIn signs people in, and maps their browsers' sessions to access tokens. It is safe for
// concurrent use.
type SignIn struct {
	Config
	issuer     *issuer // nil: none
	crossSite  *http.CrossOriginProtection
	cookie     string // name of the cookie of a session
	attempting string // name of the cookie of an attempt
	known      string // name of the cookie of a browser

	// People whose browser is known have separate places.
	newBrowsers, knownBrowsers hashing
	counted                    attempts
	verify                     func(hash, password string) bool

	asking       sync.Mutex
	hasOperators bool      // guarded by asking
	askedAt      time.Time // guarded by asking: when there was none
}

// New returns a SignIn. It does no I/O: the issuer is discovered at first use. Its error is about
// the URL.
func New(config Config) (*SignIn, error) {
	config.Lifetime = cmp.Or(config.Lifetime, DefaultLifetime)
	config.Log = cmp.Or(config.Log, slog.Default())
	if config.Now == nil {
		config.Now = time.Now
	}
	// Two installations of one host have different cookies. The prefix __Host- keeps pages of other
	// hosts of the domain from setting them.
	name := "__Host-motorpool"
	if path := strings.TrimRight(config.URL.Path, "/"); path != "" {
		// The path may have what a name must not.
		name += fmt.Sprintf("-%x", sha256.Sum256([]byte(path)))[:9]
	}
	s := &SignIn{
		Config: config, crossSite: http.NewCrossOriginProtection(), cookie: name, attempting: name + "-sign-in",
		known: name + "-browser", newBrowsers: make(hashing, hashPlaces), knownBrowsers: make(hashing, hashPlaces),
		counted: newAttempts(config.Metrics), verify: operators.VerifyPassword,
	}
	// A proxy may change the Host that it is compared with.
	if err := s.crossSite.AddTrustedOrigin(config.URL.Scheme + "://" + config.URL.Host); err != nil {
		return nil, fmt.Errorf("%s: %w", config.URL, err)
	}
	if config.Issuer.URL != "" {
		config.Issuer.Callback = config.URL.JoinPath("auth/callback").String()
		s.issuer = &issuer{
			IssuerConfig: config.Issuer, now: config.Now,
			signIns: places{most: issuerCalls, perAddress: addressCalls}, renewals: places{most: issuerCalls, perAddress: issuerCalls},
		}
	}
	return s, nil
}

func refuse(message string, cause error) *telematics.Error {
	return &telematics.Error{Code: auth.Unauthenticated, Message: message, Cause: cause}
}

var errEnded = refuse("Your session has ended. Sign in again.", nil)

// Identify returns who sends a request with a session's cookie; false: it has none, or an access
// token as well, which counts. Its error is a *telematics.Error, or has a method Unavailable() bool
// that returns true.
func (s *SignIn) Identify(r *http.Request) (auth.Identity, bool, error) {
	open, has, err := s.open(r)
	if err != nil || !has {
		return auth.Identity{}, false, err
	}
	id, err := s.identify(r.Context(), open)
	return id, true, err
}

func (s *SignIn) identify(ctx context.Context, open session) (auth.Identity, error) {
	if open.Operator != 0 {
		return s.ofOperator(ctx, open)
	}
	return s.Tokens.Authenticate(ctx, http.Header{"Authorization": {"Bearer " + open.Access}})
}

// hasToken reports whether a request has an access token. A password that a proxy asks for is none.
func hasToken(r *http.Request) bool {
	return slices.ContainsFunc(r.Header.Values("Authorization"), func(value string) bool {
		scheme, _, _ := strings.Cut(value, " ")
		return strings.EqualFold(scheme, "Bearer")
	})
}

// open returns the session of a request, with a valid access token; false: it has none.
func (s *SignIn) open(r *http.Request) (open session, has bool, err error) {
	if hasToken(r) {
		return open, false, nil
	}
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return open, false, nil
	}
	if err := s.checkOrigin(r); err != nil {
		return open, false, err
	}
	by, ok := parseSecret(cookie.Value)
	if !ok {
		return open, false, errEnded
	}
	open, ok, err = s.load(r.Context(), by)
	if ok && open.Refresh != "" && s.issuer != nil && !s.Now().Add(renewBefore).Before(open.Until) {
		open, ok, err = s.renew(r.Context(), by, open)
	}
	if err == nil && !ok {
		err = errEnded
	}
	return open, err == nil, err
}

// checkOrigin refuses a request that a page of another site or of another host of this site has
// sent. Reads as well: some of them act, such as that of a status which queries the vehicle.
func (s *SignIn) checkOrigin(r *http.Request) error {
	change := *r
	change.Method = http.MethodPost // the library lets all reads pass
	if err := s.crossSite.Check(&change); err != nil {
		return &telematics.Error{Code: auth.Forbidden, Message: OtherSite, Cause: err}
	}
	return nil
}

// SessionEnded returns a function that reports whether the session of a request has ended; nil: the
// request has none. The function calls no issuer, and returns false where the store is unavailable.
func (s *SignIn) SessionEnded(r *http.Request) func() bool {
	cookie, err := r.Cookie(s.cookie)
	if err != nil || hasToken(r) {
		return nil
	}
	by, parsed := parseSecret(cookie.Value)
	return func() bool {
		if !parsed {
			return true
		}
		open, ok, err := s.load(r.Context(), by)
		if err == nil && ok && open.Operator != 0 {
			_, err := s.ofOperator(r.Context(), open)
			return errors.Is(err, errEnded)
		}
		return err == nil && !ok
	}
}

// Begin returns the issuer's page where a person signs in, and the cookie that the callback needs.
// Its error is as that of Identify.
func (s *SignIn) Begin(ctx context.Context) (string, *http.Cookie, error) {
	if s.issuer == nil {
		return "", nil, refuse("People do not sign in at an issuer here; see docs/access.md.", nil)
	}
	a := newAttempt(s.Now().Add(attemptFor))
	page, err := s.issuer.page(ctx, a)
	if err != nil {
		return "", nil, err
	}
	key, err := s.attemptKey(ctx)
	if err != nil {
		return "", nil, err
	}
	sealed, err := key.seal(a)
	if err != nil {
		return "", nil, err
	}
	// Lax: the callback comes from the issuer's page.
	cookie := s.newCookie(s.attempting, base64.RawURLEncoding.EncodeToString(sealed), http.SameSiteLaxMode)
	cookie.MaxAge = int(attemptFor.Seconds())
	return page, cookie, nil
}

// Finish begins the session of an issuer's callback, which came from an address. It returns the
// cookies that replace those of the request. It calls the issuer once at most for an attempt of
// Begin, and for no other. Its error is as that of Identify.
func (s *SignIn) Finish(r *http.Request, address string) (auth.Identity, []*http.Cookie, error) {
	a, ok, err := s.attemptOf(r)
	query := r.URL.Query()
	switch {
	case err != nil:
		return auth.Identity{}, nil, err
	case s.issuer == nil || !ok:
		return auth.Identity{}, nil, refuse("This sign-in has taken too long, or began in another browser. Sign in again.", nil)
	case subtle.ConstantTimeCompare([]byte(query.Get("state")), []byte(a.State)) != 1:
		return auth.Identity{}, nil, refuse("Another sign-in has begun in this browser meanwhile. Sign in again.", nil)
	case query.Has("iss") && query.Get("iss") != s.Issuer.URL: // RFC 9207
		return auth.Identity{}, nil, refuse("This answer comes from another issuer than the one of this service.", nil)
	case query.Get("code") == "":
		return auth.Identity{}, nil, refuse(fmt.Sprintf("The issuer did not sign you in: %.100q.", query.Get("error")), nil)
	}
	used := false
	tokens, err := s.issuer.exchange(r.Context(), network(address), a, query, func(ctx context.Context) error {
		mine := newSecret() // tells this use from others
		fresh, err := s.Store.PutNew(ctx, a.storeKey(), mine[:], max(a.Until.Sub(s.Now()), time.Second))
		if used = err == nil && !fresh; used {
			return errors.New("the attempt was used before")
		}
		return err
	})
	switch {
	case used:
		return auth.Identity{}, nil, refuse("This sign-in was used already. Sign in again.", err)
	case err != nil:
		var unavailable interface{ Unavailable() bool }
		if errors.As(err, &unavailable) {
			return auth.Identity{}, nil, err
		}
		return auth.Identity{}, nil, refuse(
			"The issuer's answer is not good. Sign in again; if that does not help, the service's log says why.", err,
		)
	}
	return s.admit(r.Context(), tokens)
}

// network returns the part of an address that one caller has: of IPv6, 64 bits.
func network(address string) string {
	if parsed, err := netip.ParseAddr(address); err == nil && parsed.Is6() && !parsed.Is4In6() {
		return netip.PrefixFrom(parsed, 64).Masked().String()
	}
	return address
}

// admit begins a session with tokens of a person who may use the console.
func (s *SignIn) admit(ctx context.Context, tokens session) (auth.Identity, []*http.Cookie, error) {
	id, err := s.Tokens.Authenticate(ctx, http.Header{"Authorization": {"Bearer " + tokens.Access}})
	if err != nil {
		return id, nil, err
	}
	if id.Actor.Role != telematics.Admin {
		return id, nil, &telematics.Error{
			Code: auth.Forbidden,
			Message: fmt.Sprintf(
				"You are signed in at the issuer as %s, whose access token has no role that may use the console.",
				id.Actor.Subject,
			),
		}
	}
	if tokens.Until.IsZero() {
		tokens.Until = id.Until
	}
	by, err := s.begin(ctx, tokens)
	if err != nil {
		return id, nil, err
	}
	return id, []*http.Cookie{
		s.newCookie(s.cookie, by.String(), http.SameSiteStrictMode), s.noCookie(s.attempting, http.SameSiteLaxMode),
	}, nil
}

// End ends the session of a request, and returns whose it was, or the zero value; the issuer's page
// for signing out there, too, or ""; and the cookies that replace those of the request. Its error
// is as that of Identify.
func (s *SignIn) End(r *http.Request) (of auth.Identity, page string, cookies []*http.Cookie, err error) {
	cookies = []*http.Cookie{s.noCookie(s.cookie, http.SameSiteStrictMode), s.noCookie(s.attempting, http.SameSiteLaxMode)}
	if err := s.checkOrigin(r); err != nil {
		return of, "", nil, err
	}
	cookie, err := r.Cookie(s.cookie)
	if err != nil {
		return of, "", cookies, nil
	}
	by, ok := parseSecret(cookie.Value)
	if !ok {
		return of, "", cookies, nil
	}
	open, ok, err := s.load(r.Context(), by)
	if err != nil || !ok {
		return of, "", cookies, err
	}
	if err := s.Store.Delete(r.Context(), by.storeKey()); err != nil {
		return of, "", nil, err
	}
	if s.issuer != nil {
		page = s.issuer.signOutPage(r.Context(), open, s.URL.JoinPath("console/").String())
	}
	of, err = s.identify(r.Context(), open)
	if err != nil { // the session has ended all the same
		s.Log.DebugContext(r.Context(), "whose session it was is not known", "err", err)
	}
	return of, page, cookies, nil
}

// offered is the suffix of the store key of an offer, so that its code cannot be used as a cookie.
const offered = ":offer"

// Offer returns a code with which browsers can begin sessions for some time, with this access
// token: for development. Its error is that of Store.
func (s *SignIn) Offer(ctx context.Context, accessToken string, keep time.Duration) (string, error) {
	by := newSecret()
	return by.String(), s.keep(ctx, by.storeKey()+offered, by, session{Access: accessToken, End: s.Now().Add(keep)})
}

// Redeem begins a session with a code of Offer. Its error is as that of Identify.
func (s *SignIn) Redeem(ctx context.Context, code string) (auth.Identity, []*http.Cookie, error) {
	by, ok := parseSecret(code)
	if !ok {
		return auth.Identity{}, nil, refuse("This link is not complete.", nil)
	}
	sealed, err := s.Store.Get(ctx, by.storeKey()+offered)
	if err != nil {
		return auth.Identity{}, nil, err
	}
	var offer session
	err = by.open(sealed, &offer)
	if sealed == nil || err != nil || !s.Now().Before(offer.End) {
		return auth.Identity{}, nil, refuse("This link has ended.", err)
	}
	return s.admit(ctx, session{Access: offer.Access})
}

// attemptOf returns the attempt of Begin in a request's cookie, or false if there is none or it has
// taken too long.
func (s *SignIn) attemptOf(r *http.Request) (a attempt, ok bool, err error) {
	cookie, err := r.Cookie(s.attempting)
	if err != nil {
		return a, false, nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return a, false, nil
	}
	key, err := s.attemptKey(r.Context())
	if err != nil || key.open(sealed, &a) != nil {
		return a, false, err
	}
	return a, s.Now().Before(a.Until), nil
}

// attemptKey returns the secret that all instances seal attempts with. It protects no session: who
// knows it can make the service ask the issuer about a made-up code, and no more.
func (s *SignIn) attemptKey(ctx context.Context) (secret, error) {
	const name = "attempts"
	value, err := s.Store.Get(ctx, name)
	if err != nil {
		return secret{}, err
	}
	if value == nil {
		fresh := newSecret()
		value = fresh[:]
		if ok, err := s.Store.PutNew(ctx, name, value, attemptKeyFor); err != nil {
			return secret{}, err
		} else if !ok { // another instance was faster
			if value, err = s.Store.Get(ctx, name); err != nil {
				return secret{}, err
			}
		}
	}
	if len(value) != len(secret{}) {
		return secret{}, auth.UnavailableError("the key of sign-ins was lost in this moment")
	}
	return secret(value), nil
}

func (s *SignIn) newCookie(name, value string, site http.SameSite) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", Secure: true, HttpOnly: true, SameSite: site}
}

func (s *SignIn) noCookie(name string, site http.SameSite) *http.Cookie {
	cookie := s.newCookie(name, "", site)
	cookie.MaxAge = -1
	return cookie
}
