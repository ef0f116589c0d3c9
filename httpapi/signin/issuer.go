package signin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
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
	now   func() time.Time
	calls chan struct{} // has room for issuerCalls

	mu       sync.Mutex
	found    *provider // guarded by mu; nil: not discovered yet
	err      error     // guarded by mu: of the last discovery
	tryAfter time.Time // guarded by mu
}

// provider is the result of discovery.
type provider struct {
	oauth    oauth2.Config
	verifier *oidc.IDTokenVerifier
	signOut  string // end_session_endpoint; empty: none
}

type unavailableError string

func (e unavailableError) Error() string { return string(e) }

// Unavailable reports that the request may be repeated later.
func (unavailableError) Unavailable() bool { return true }

// errSessionEnded is the issuer's refusal to renew tokens.
var errSessionEnded = errors.New("the issuer renews the tokens no more")

var errBusy = unavailableError("too many people sign in at the same time")

// ask calls the issuer, after discovery. It does not queue: it fails with errBusy if issuerCalls
// calls are in flight.
func (i *issuer) ask(ctx context.Context, call func(context.Context, *provider) error) error {
	select {
	case i.calls <- struct{}{}:
		defer func() { <-i.calls }()
	default:
		return errBusy
	}
	ctx, cancel := context.WithTimeout(ctx, issuerTimeout)
	defer cancel()
	found, err := i.discover(ctx)
	if err != nil {
		return err
	}
	return call(ctx, found)
}

// discover returns the issuer's discovery document, which it reads until it succeeds once.
func (i *issuer) discover(ctx context.Context) (*provider, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.found != nil {
		return i.found, nil
	}
	if i.now().Before(i.tryAfter) {
		return nil, i.err
	}
	// The provider reads keys with this context for as long as it lives.
	client := &http.Client{Timeout: issuerTimeout}
	found, err := oidc.NewProvider(oidc.ClientContext(context.WithoutCancel(ctx), client), i.URL)
	if err != nil {
		i.err, i.tryAfter = unavailableError(fmt.Sprintf("discover the issuer of access tokens: %v", err)), i.now().Add(discoverAgain)
		return nil, i.err
	}
	var more struct {
		SignOut string `json:"end_session_endpoint"`
	}
	if err := found.Claims(&more); err != nil {
		return nil, fmt.Errorf("read the issuer's discovery: %w", err)
	}
	i.found = &provider{
		oauth: oauth2.Config{
			ClientID: i.ClientID, ClientSecret: i.ClientSecret, Endpoint: found.Endpoint(), RedirectURL: i.Callback,
			Scopes: append([]string{oidc.ScopeOpenID}, i.Scopes...),
		},
		verifier: found.VerifierContext(oidc.ClientContext(context.WithoutCancel(ctx), client), &oidc.Config{ClientID: i.ClientID, Now: i.now}),
		signOut:  more.SignOut,
	}
	return i.found, nil
}

// attempt is a sign-in that has begun. It is kept in a cookie of the browser that began it.
type attempt struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

func newAttempt() attempt {
	return attempt{State: newSecret().String(), Nonce: newSecret().String(), Verifier: oauth2.GenerateVerifier()}
}

// page returns the issuer's page for an attempt.
func (i *issuer) page(ctx context.Context, a attempt) (page string, err error) {
	options := []oauth2.AuthCodeOption{oidc.Nonce(a.Nonce), oauth2.S256ChallengeOption(a.Verifier)}
	if i.Audience != "" {
		options = append(options, oauth2.SetAuthURLParam("audience", i.Audience), oauth2.SetAuthURLParam("resource", i.Audience))
	}
	err = i.ask(ctx, func(_ context.Context, found *provider) error {
		page = found.oauth.AuthCodeURL(a.State, options...)
		return nil
	})
	return page, err
}

// exchange returns the tokens for the code of an attempt's callback.
func (i *issuer) exchange(ctx context.Context, a attempt, code string) (s session, err error) {
	err = i.ask(ctx, func(ctx context.Context, found *provider) error {
		tokens, err := found.oauth.Exchange(ctx, code, oauth2.VerifierOption(a.Verifier))
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
		s = session{Access: tokens.AccessToken, Refresh: tokens.RefreshToken, ID: idToken, Until: tokens.Expiry}
		return nil
	})
	return s, err
}

// renew returns a session with new tokens, or errSessionEnded.
func (i *issuer) renew(ctx context.Context, old session) (session, error) {
	renewed := old
	err := i.ask(ctx, func(ctx context.Context, found *provider) error {
		tokens, err := found.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: old.Refresh}).Token()
		if err != nil {
			return classify("renew tokens", err)
		}
		renewed.Access, renewed.Refresh, renewed.Until = tokens.AccessToken, tokens.RefreshToken, tokens.Expiry
		if idToken, ok := tokens.Extra("id_token").(string); ok {
			renewed.ID = idToken
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

// classify distinguishes a refusal of the issuer from its failure. The error does not contain the
// issuer's response, which may repeat secrets of the request.
func classify(doing string, err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError && refused.Response.StatusCode != http.StatusTooManyRequests {
		if refused.ErrorCode == "" {
			refused.ErrorCode = refused.Response.Status
		}
		return fmt.Errorf("%s: %w: %s", doing, errSessionEnded, refused.ErrorCode)
	}
	if refused != nil {
		return unavailableError(doing + ": " + refused.Response.Status)
	}
	return unavailableError(fmt.Sprintf("%s: %v", doing, err))
}
