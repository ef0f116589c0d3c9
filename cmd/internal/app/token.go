package app

import (
	"fmt"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// Grant is what a development token says.
type Grant struct {
	Issuer   string
	Audience string
	Actor    telematics.Actor
	Scope    string // separated by spaces
	Lifetime time.Duration
}

// Scopes of administrators; see docs/tokens.md.
const (
	AllAgencies = "all_agencies" // bound to no agency
	Halt        = "halt"
	AgencyKeys  = "agency_keys"
)

// Mint returns an access token for development and tests, signed by a key made
// for that. In production an issuer of your own does this.
func (g Grant) Mint(key signing.Key) (string, error) {
	now := time.Now()
	build := jwt.NewBuilder().
		Issuer(g.Issuer).Audience([]string{g.Audience}).Subject(g.Actor.Subject).
		IssuedAt(now).NotBefore(now).Expiration(now.Add(g.Lifetime)).
		Claim("role", string(g.Actor.Role))
	if g.Actor.Agency != 0 {
		build = build.Claim("agency_id", int64(g.Actor.Agency))
	}
	if g.Scope != "" {
		build = build.Claim("scope", g.Scope)
	}
	token, err := build.Build()
	if err != nil {
		return "", fmt.Errorf("build token: %w", err)
	}
	header := jws.NewHeaders()
	if err := header.Set(jws.KeyIDKey, key.ID); err != nil {
		return "", fmt.Errorf("build token: %w", err)
	}
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.EdDSA(), key.Private, jws.WithProtectedHeaders(header)))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return string(signed), nil
}
