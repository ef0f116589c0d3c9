package app

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"motorpool/httpapi/auth"
	"motorpool/telematics"
	"motorpool/telematics/signing"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"
)

// tokens returns the verifier of access tokens.
func (c Config) tokens(keys *auth.Keys) *auth.Tokens {
	return auth.NewTokens(auth.TokensConfig{
		Issuer: c.TokenIssuer, Audience: c.TokenAudience, Keys: keys, Types: list(c.TokenTyp),
		Claims: auth.Claims{ // empty names mean the defaults
			Role: c.ClaimRole, Agency: c.ClaimAgency, Scope: c.ClaimScope,
			Admin: c.RoleAdmin, Operator: c.RoleOperator, Viewer: c.RoleViewer, Client: c.RoleClient,
		},
	})
}

func (c Config) checkClaims() error {
	return errors.Join(
		claimPath("claim-role", c.ClaimRole),
		claimPath("claim-agency", c.ClaimAgency),
		claimPath("claim-scope", c.ClaimScope),
		c.checkRoles(),
	)
}

func claimPath(flag, path string) error {
	if path == "" { // the default
		return nil
	}
	if _, err := auth.ParseClaimPath(path); err != nil {
		return fmt.Errorf("--%s: %w", flag, err)
	}
	return nil
}

func (c Config) checkRoles() error {
	flags := map[string]string{}
	for _, role := range []struct{ flag, name string }{
		{"--role-admin", cmp.Or(c.RoleAdmin, string(telematics.Admin))},
		{"--role-operator", cmp.Or(c.RoleOperator, auth.Operator.String())},
		{"--role-viewer", cmp.Or(c.RoleViewer, auth.Viewer.String())}, {"--role-client", cmp.Or(c.RoleClient, string(telematics.Client))},
	} {
		if other, taken := flags[role.name]; taken {
			return fmt.Errorf("%s, %s: the same name cannot stand for both", other, role.flag)
		}
		flags[role.name] = role.flag
	}
	return nil
}

// checkOrigins returns an error for origins that browsers do not send so: they would never match.
func (c Config) checkOrigins() error {
	var problems []error
	for _, origin := range list(c.CORSOrigins) {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(origin, "*") ||
			strings.ToLower(u.Scheme+"://"+u.Host) != origin {
			problems = append(
				problems,
				fmt.Errorf("--cors-origins: %q is not an origin such as https://console.example.com: no *, no path, in lower case", origin),
			)
		}
	}
	return errors.Join(problems...)
}

// list splits a setting at its commas; empty: nothing.
func list(setting string) []string {
	var elements []string
	for element := range strings.SplitSeq(setting, ",") {
		if element = strings.TrimSpace(element); element != "" {
			elements = append(elements, element)
		}
	}
	return elements
}

// Grant has the claims of a development token.
type Grant struct {
	Issuer   string
	Audience string
	Actor    telematics.Actor
	Level    auth.Level // of an administrator; zero: auth.Administrator
	Scope    string     // separated by spaces
	Lifetime time.Duration
}

// Mint returns an access token for development and tests, signed by a key made for that. In
// production an issuer of your own does this. It fails where the key cannot sign.
func (g Grant) Mint(key signing.Key) (string, error) {
	now := time.Now()
	role := string(g.Actor.Role)
	if g.Level == auth.Viewer || g.Level == auth.Operator {
		role = g.Level.String()
	}
	build := jwt.NewBuilder().
		Issuer(g.Issuer).Audience([]string{g.Audience}).Subject(g.Actor.Subject).
		IssuedAt(now).NotBefore(now).Expiration(now.Add(g.Lifetime)).
		Claim("role", role)
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
