package httpapi_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/telematics"
)

// issuerTokens are claims as issuers make them, with the settings for each in docs/tokens.md.
var issuerTokens = map[string]struct {
	claims auth.Claims
	typ    string
	token  string
	role   telematics.Role
	agency telematics.AgencyID
	status int
}{
	"Keycloak, all agencies": {
		claims: auth.Claims{Role: "realm_access.roles", Admin: "fleet-admin", Client: "fleet-client"}, typ: "JWT",
		token: `{"sub":"f1","azp":"console","scope":"openid profile all_agencies","realm_access":{"roles":["offline_access","fleet-admin"]}}`,
		role:  telematics.Admin, status: 200,
	},
	"Keycloak, one agency": {
		claims: auth.Claims{Role: "realm_access.roles", Admin: "fleet-admin", Client: "fleet-client"}, typ: "JWT",
		token: `{"sub":"f1","scope":"openid profile","agency_id":2,"realm_access":{"roles":["uma_authorization","fleet-admin"]}}`,
		role:  telematics.Admin, agency: 2, status: 200,
	},
	"Keycloak, roles of a client with dots in its name": {
		claims: auth.Claims{Role: `resource_access.fleet\.example\.com.roles`}, typ: "JWT",
		token: `{"sub":"f1","agency_id":[2],"resource_access":{"fleet.example.com":{"roles":["admin"]},"fleet":{"roles":["client"]}}}`,
		role:  telematics.Admin, agency: 2, status: 200,
	},
	"Keycloak, without a role of ours": {
		claims: auth.Claims{Role: "realm_access.roles", Admin: "fleet-admin"}, typ: "JWT",
		token:  `{"sub":"f1","agency_id":2,"realm_access":{"roles":["admin","offline_access"]}}`,
		status: 403,
	},
	"Auth0, one agency": {
		claims: auth.Claims{Role: "https://example.com/roles", Agency: "https://example.com/agency"}, typ: "at+jwt",
		token: `{"sub":"auth0|7","scope":"openid","https://example.com/roles":["admin"],"https://example.com/agency":3}`,
		role:  telematics.Admin, agency: 3, status: 200,
	},
	"Auth0, all agencies, as a permission": {
		claims: auth.Claims{Role: "https://example.com/roles", Agency: "https://example.com/agency", Scope: "permissions"}, typ: "JWT",
		token: `{"sub":"auth0|7","permissions":["all_agencies","halt"],"https://example.com/roles":["admin"]}`,
		role:  telematics.Admin, status: 200,
	},
	"Auth0, the agency under another name": {
		claims: auth.Claims{Role: "https://example.com/roles", Agency: "https://example.com/agency"}, typ: "JWT",
		token:  `{"sub":"auth0|7","https://example.com/roles":["admin"],"https://example.com/agencies":3}`,
		status: 401,
	},
	"Entra ID, app roles": {
		claims: auth.Claims{Role: "roles", Scope: "roles", Admin: "Fleet.Admin"}, typ: "JWT",
		token: `{"sub":"AAAA","tid":"t","roles":["Fleet.Admin","all_agencies"]}`,
		role:  telematics.Admin, status: 200,
	},
	"Entra ID, the agency as a directory extension": {
		claims: auth.Claims{Role: "roles", Scope: "roles", Admin: "Fleet.Admin", Agency: "extn.agency_id"}, typ: "JWT",
		token: `{"sub":"AAAA","tid":"t","scp":"access_as_user","roles":["Fleet.Admin"],"extn":{"agency_id":["4"]}}`,
		role:  telematics.Admin, agency: 4, status: 200,
	},
	"Entra ID, without an app role of all agencies": {
		claims: auth.Claims{Role: "roles", Scope: "roles", Admin: "Fleet.Admin", Agency: "extn.agency_id"}, typ: "JWT",
		token:  `{"sub":"AAAA","tid":"t","roles":["Fleet.Admin"]}`,
		status: 401,
	},
}

func TestTokens_OfCommonIssuersAreMapped(t *testing.T) {
	keys := loaded(t, auth.KeysConfig{Source: keyFile(t, jwks(edKey(), rsaKey()))})
	for name, c := range issuerTokens {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, func(config *httpapi.Config) {
				config.Tokens = auth.NewTokens(auth.TokensConfig{Issuer: issuer, Audience: audience, Keys: keys, Claims: c.claims,
					Now: func() time.Time { return now }})
			})
			own := map[string]any{"role": nil, "scope": nil}
			if err := json.Unmarshal([]byte(c.token), &own); err != nil {
				t.Fatal(err)
			}
			r := a.post(lock, withToken(rsaKey().mintTyped(c.typ, claims(own))))
			if r.status != c.status {
				t.Fatalf("%d %s, want %d", r.status, r.text, c.status)
			}
			if c.status != 200 {
				return
			}
			if got := a.controller.last().Actor; got.Role != c.role || got.Agency != c.agency {
				t.Errorf("actor %+v, want %s of agency %d", got, c.role, c.agency)
			}
		})
	}
}

func TestMe_SaysTheHighestLevelThatTheTokenNames(t *testing.T) {
	keys := loaded(t, auth.KeysConfig{Source: keyFile(t, jwks(edKey()))})
	renamed := auth.Claims{Admin: "boss", Operator: "ops", Viewer: "desk"}
	for _, c := range []struct {
		claims auth.Claims
		roles  []string
		level  string // empty: refused
	}{
		{auth.Claims{}, []string{"viewer"}, "viewer"},
		{auth.Claims{}, []string{"operator", "viewer", "offline_access"}, "operator"},
		{auth.Claims{}, []string{"viewer", "admin"}, "administrator"},
		{auth.Claims{}, []string{"administrator"}, ""},
		{auth.Claims{}, []string{"Viewer"}, ""},
		{renamed, []string{"ops"}, "operator"},
		{renamed, []string{"operator"}, ""},
		{renamed, []string{"desk", "boss"}, "administrator"},
	} {
		a := newAPI(t, func(config *httpapi.Config) {
			config.Tokens = auth.NewTokens(
				auth.TokensConfig{Issuer: issuer, Audience: audience, Keys: keys, Claims: c.claims, Now: func() time.Time { return now }},
			)
		})
		r := a.get("/api/v1/admin/me", claiming(map[string]any{"role": c.roles, "agency_id": 2}))
		if c.level == "" {
			r.wants(403, "forbidden")
			continue
		}
		if got := r.wants(200, "").at("level"); got != c.level || r.at("agency_id") != 2.0 {
			t.Errorf("%v: level %v of agency %v, want %s of 2", c.roles, got, r.at("agency_id"), c.level)
		}
	}
	a := newAPI(t)
	a.get("/api/v1/admin/me", claiming(map[string]any{"role": []string{"viewer", "client"}, "agency_id": 2})).wants(401, "unauthenticated")
}

func TestClaims_ParseClaimPath(t *testing.T) {
	for path, want := range map[string][]string{
		"role":                            {"role"},
		"realm_access.roles":              {"realm_access", "roles"},
		`resource_access.my\.app.roles`:   {"resource_access", "my.app", "roles"},
		"https://example.com/agency":      {"https://example.com/agency"},
		"http://example.com/claims.roles": {"http://example.com/claims.roles"},
		`urn:example\.com:role`:           {"urn:example.com:role"},
		"":                                nil,
		".":                               nil,
		"a..b":                            nil,
		"a.":                              nil,
	} {
		if got, err := auth.ParseClaimPath(path); !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v, want %q", path, got, err, want)
		}
	}
}
