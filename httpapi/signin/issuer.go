package signin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/sync/singleflight"

	"motorpool/httpapi/auth"
)

// IssuerConfig is how the service is registered at the issuer. URL, ClientID and Callback are
// required.
type IssuerConfig struct {
	URL          string // of OpenID Connect discovery, without /.well-known/…
	ClientID     string
	ClientSecret string   // empty: a public client
	Scopes       []string // besides openid
	// Audience is what the access token is for, where the issuer requires it: sent as audience
	// (Auth0) and resource (RFC 8707). Empty: not sent.
	Audience string
	Callback string // the URL of /auth/callback, as browsers reach it
}

// issuer is a client of the operator's OpenID Connect provider. Discovery happens at first use: the
// provider may be unavailable while the service starts.
type issuer struct {
	IssuerConfig
	now func() time.Time
	// Unauthenticated callers can begin a sign-in, so renewals of sessions have separate places.
	signIns, renewals places

	found       atomic.Pointer[provider] // nil: not discovered yet
	discovering singleflight.Group
	err         error     // of the last discovery; only a discovery accesses it
	tryAfter    time.Time // the same
}

// provider is the result of discovery.
type provider struct {
	oauth     oauth2.Config
	verifier  *oidc.IDTokenVerifier
	signOut   string // end_session_endpoint; empty: none
	namesSelf bool   // every callback has iss (RFC 9207)
}

// places bound the concurrent calls to the issuer, and those that one address causes. Safe for
// concurrent use.
type places struct {
	most, perAddress int

	mu    sync.Mutex
	taken int
	of    map[string]int // by address
}

// take reports whether there was a place. Then leave must be called.
func (p *places) take(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.taken >= p.most || p.of[address] >= p.perAddress {
		return false
	}
	if p.of == nil {
		p.of = map[string]int{}
	}
	p.taken++
	p.of[address]++
	return true
}

func (p *places) leave(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken--
	if p.of[address]--; p.of[address] == 0 {
		delete(p.of, address)
	}
}

// errSessionEnded is the issuer's refusal to renew tokens.
var errSessionEnded = errors.New("the issuer renews the tokens no more")

// errRefused is the issuer's refusal of a request for a reason that no person who signs in can
// change.
var errRefused = errors.New(
	"the issuer refuses the service's request; compare the client id, the client secret and the scopes with its registration there",
)

// finalCodes are the errors with which an issuer ends a session: the refresh token is not valid any
// more (RFC 6749, 5.2), the person is refused (4.1.2.1), or must sign in again (OpenID Connect
// Core, 3.1.2.6).
var finalCodes = []string{
	"invalid_grant", "access_denied", "interaction_required", "login_required", "account_selection_required",
	"consent_required",
}

// errBusy is answered as any server that is unavailable.
var errBusy = auth.UnavailableError("too many people sign in at the same time")

// ask calls the issuer, after discovery, in one of the places. It does not queue: it fails with
// errBusy if there is none for the address.
func (i *issuer) ask(ctx context.Context, in *places, address string, call func(context.Context, *provider) error) error {
	if !in.take(address) {
		return errBusy
	}
	defer in.leave(address)
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	found, err := i.discover(ctx)
	if err != nil {
		return err
	}
	return call(ctx, found)
}

// discover returns the issuer's discovery document, which is read until that succeeds once.
func (i *issuer) discover(ctx context.Context) (*provider, error) {
	if found := i.found.Load(); found != nil {
		return found, nil
	}
	select {
	case read := <-i.discovering.DoChan("", func() (any, error) { return nil, i.readDiscovery() }):
		return i.found.Load(), read.Err
	case <-ctx.Done():
		return nil, auth.UnavailableError("discover the issuer of access tokens: it takes too long")
	}
}

// readDiscovery sets found. There is one call at a time.
func (i *issuer) readDiscovery() error {
	if i.found.Load() != nil {
		return nil
	}
	if i.now().Before(i.tryAfter) {
		return i.err
	}
	// The provider reads keys with this context for as long as it lives.
	ctx := oidc.ClientContext(context.Background(), &http.Client{Timeout: issuerTimeout})
	found, err := oidc.NewProvider(ctx, i.URL)
	if err != nil {
		i.err, i.tryAfter = auth.UnavailableError(fmt.Sprintf("discover the issuer of access tokens: %v", err)), i.now().Add(discoverAgain)
		return i.err
	}
	var more struct {
		SignOut   string `json:"end_session_endpoint"`
		NamesSelf bool   `json:"authorization_response_iss_parameter_supported"`
	}
	if err := found.Claims(&more); err != nil {
		return fmt.Errorf("read the issuer's discovery: %w", err)
	}
	i.found.Store(&provider{
		oauth: oauth2.Config{
			ClientID: i.ClientID, ClientSecret: i.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: i.Callback,
			Scopes: append([]string{oidc.ScopeOpenID}, i.Scopes...),
		},
		verifier: found.VerifierContext(ctx, &oidc.Config{ClientID: i.ClientID, Now: i.now}),
		signOut:  more.SignOut, namesSelf: more.NamesSelf,
	})
	return nil
}

// attempt is a sign-in that has begun. It is kept in a cookie of the browser that began it.
type attempt struct {
	State    string    `json:"state"`
	Nonce    string    `json:"nonce"`
	Verifier string    `json:"verifier"`
	Until    time.Time `json:"until"`
}

func newAttempt(until time.Time) attempt {
	return attempt{State: newSecret().String(), Nonce: newSecret().String(), Verifier: oauth2.GenerateVerifier(), Until: until}
}

// storeKey returns the key under which the store has that the attempt was used.
func (a attempt) storeKey() string {
	state, _ := parseSecret(a.State) // made by newAttempt
	return state.storeKey() + ":used"
}

// page returns the issuer's page for an attempt.
func (i *issuer) page(ctx context.Context, a attempt) (string, error) {
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if i.Audience != "" {
		options = append(options, oauth2.SetAuthURLParam("audience", i.Audience), oauth2.SetAuthURLParam("resource", i.Audience))
	}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	found, err := i.discover(ctx)
	if err != nil {
		return "", err
	}
	return found.oauth.AuthCodeURL(a.State, options...), nil
}

// exchange returns the tokens for the code of an attempt's callback, which came from an address. It
// calls the issuer only if use, which is called in one of the places, returns no error.
func (i *issuer) exchange(
	ctx context.Context, address string, a attempt, callback url.Values, use func(context.Context) error,
) (s session, err error) {
	err = i.ask(ctx, &i.signIns, address, func(ctx context.Context, found *provider) error {
		if err := use(ctx); err != nil {
			return err
		}
		if found.namesSelf && !callback.Has("iss") {
			return errors.New("the callback does not name its issuer (iss), though this issuer always does")
		}
		tokens, err := found.oauth.Exchange(ctx, callback.Get("code"), oauth2.VerifierOption(a.Verifier))
		if err != nil {
			return classify("exchange the issuer's code", err)
		}
		idToken, _ := tokens.Extra("id_token").(string)
		verified, err := found.verifier.Verify(ctx, idToken)
		if err != nil {
			return fmt.Errorf("verify the ID token: %w", err)
		}
		if verified.Nonce != a.Nonce {
			return errors.New("verify the ID token: it is of another sign-in (nonce)")
		}
		if err := isOf(verified, idToken, tokens.AccessToken); err != nil {
			return fmt.Errorf("verify the access token: %w", err)
		}
		s = session{Access: tokens.AccessToken, Refresh: tokens.RefreshToken, ID: idToken, Until: tokens.Expiry}
		return nil
	})
	return s, err
}

// isOf returns an error if an access token is not of the person of an ID token. The ID token's hash
// of it decides where there is one.
func isOf(verified *oidc.IDToken, idToken, accessToken string) error {
	if verified.AccessTokenHash != "" {
		return verified.VerifyAccessToken(accessToken)
	}
	if !holderOf(idToken).is(holderOf(accessToken)) {
		return errors.New("it is of another person than the ID token (sub)")
	}
	return nil
}

// renew returns a session with new tokens, or errSessionEnded. It calls nothing after the issuer
// has answered: the old refresh token may be used up.
func (i *issuer) renew(ctx context.Context, old session) (session, error) {
	renewed := old
	err := i.ask(ctx, &i.renewals, "", func(ctx context.Context, found *provider) error {
		tokens, err := found.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: old.Refresh}).Token()
		if err != nil {
			return classify("renew tokens", err)
		}
		renewed.Access, renewed.Refresh, renewed.Until = tokens.AccessToken, tokens.RefreshToken, tokens.Expiry
		if idToken, ok := tokens.Extra("id_token").(string); ok {
			renewed.ID = idToken
		}
		if !holderOf(renewed.Access).is(holderOf(old.Access)) || !holderOf(renewed.ID).is(holderOf(old.ID)) {
			return fmt.Errorf("renew tokens: %w: the new ones are of another person (sub)", errSessionEnded)
		}
		return nil
	})
	return renewed, err
}

// signOutPage returns where the issuer ends its own session (OpenID Connect RP-Initiated Logout),
// or "" where it has no such page.
func (i *issuer) signOutPage(ctx context.Context, open session, after string) string {
	found, err := i.discover(ctx)
	if err != nil || found.signOut == "" {
		return ""
	}
	page, err := url.Parse(found.signOut)
	if err != nil {
		return ""
	}
	query := page.Query()
	query.Set("client_id", i.ClientID)
	query.Set("post_logout_redirect_uri", after)
	if open.ID != "" {
		query.Set("id_token_hint", open.ID)
	}
	page.RawQuery = query.Encode()
	return page.String()
}

// classify distinguishes the end of a session, a refusal of the service's request, and a failure
// after which the same request may succeed. The error does not contain the issuer's response, which
// may repeat secrets of the request.
func classify(doing string, err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.Response == nil {
		return auth.UnavailableError(fmt.Sprintf("%s: %v", doing, err))
	}
	code := cmp.Or(refused.ErrorCode, refused.Response.Status)
	switch status := refused.Response.StatusCode; {
	case status >= http.StatusInternalServerError, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout:
		return auth.UnavailableError(doing + ": " + refused.Response.Status)
	case slices.Contains(finalCodes, code):
		return fmt.Errorf("%s: %w: %s", doing, errSessionEnded, code)
	default:
		return fmt.Errorf("%s: %w: %s", doing, errRefused, code)
	}
}
