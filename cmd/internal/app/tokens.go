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
)

// tokens returns the verifier of the settings.
func (c Config) tokens(keys *auth.Keys, now func() time.Time) *auth.Tokens {
	return auth.NewTokens(auth.TokensConfig{
		Issuer: c.TokenIssuer, Audience: c.TokenAudience, Keys: keys, Types: list(c.TokenTyp), Claims: c.claims(), Now: now,
	})
}

// claims has empty names where the defaults are meant.
func (c Config) claims() auth.Claims {
	return auth.Claims{Role: c.ClaimRole, Agency: c.ClaimAgency, Scope: c.ClaimScope, Admin: c.RoleAdmin, Client: c.RoleClient}
}

func (c Config) checkClaims() error {
	return errors.Join(
		claimPath("claim-role", c.ClaimRole),
		claimPath("claim-agency", c.ClaimAgency),
		claimPath("claim-scope", c.ClaimScope),
		differentRoles(c.RoleAdmin, c.RoleClient),
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

func differentRoles(admin, client string) error {
	if cmp.Or(admin, string(telematics.Admin)) == cmp.Or(client, string(telematics.Client)) {
		return errors.New("--role-admin, --role-client: the same name cannot stand for both")
	}
	return nil
}

// checkOrigins wants origins as browsers send them: anything else would never match.
func (c Config) checkOrigins() error {
	var problems []error
	for _, origin := range list(c.CORSOrigins) {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme == "" || u.Host == "" || strings.Contains(origin, "*") || strings.ToLower(u.Scheme+"://"+u.Host) != origin {
			problems = append(problems, fmt.Errorf("--cors-origins: %q is not an origin such as https://console.example.com: no *, no path, in lower case", origin))
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
