package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"motorpool/httpapi"
	"motorpool/httpapi/auth"
	"motorpool/internal/assert"
	"motorpool/internal/require"
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
		token: `{"sub":"f1","azp":"console","scope":"openid profile all_agencies","realm_access":{"roles":["offline_access",` +
			`"fleet-admin"]}}`,
		role: telematics.Admin, status: 200,
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
		token: `{"sub":"auth0|7","scope":"openid","https://example.com/roles":["admin"],"https://example.com/agency":"3"}`,
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
			a := apiWith(t, keys, func(tokens *auth.TokensConfig) { tokens.Claims = c.claims })
			own := map[string]any{"role": nil, "scope": nil}
			require.NoError(t, json.Unmarshal([]byte(c.token), &own))
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
		a := apiWith(t, keys, func(tokens *auth.TokensConfig) { tokens.Claims = c.claims })
		r := a.get("/api/v1/admin/me", claiming(claimSet{"role": c.roles, "agency_id": 2}))
		if c.level == "" {
			r.wants(403, "forbidden")
			continue
		}
		if got := r.wants(200, "").at("level"); got != c.level || r.at("agency_id") != 2.0 {
			t.Errorf("%v: level %v of agency %v, want %s of 2", c.roles, got, r.at("agency_id"), c.level)
		}
	}
	a := newAPI(t)
	a.get("/api/v1/admin/me", claiming(claimSet{"role": []string{"viewer", "client"}, "agency_id": 2})).wants(401, "unauthenticated")
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

// running returns keys whose Run ends with the test.
func running(t *testing.T, config auth.KeysConfig) *auth.Keys {
	t.Helper()
	config.Log = slog.New(slog.DiscardHandler)
	keys := auth.NewKeys(config)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- keys.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended, "Run")
	})
	return keys
}

// issuerServer serves a JWKS that a test may change, and counts its reads.
type issuerServer struct {
	*httptest.Server
	jwks   atomic.Pointer[[]byte]
	status atomic.Int64
	reads  atomic.Int64
}

func newIssuerServer(t *testing.T, signers ...signer) *issuerServer {
	s := &issuerServer{}
	s.status.Store(http.StatusOK)
	s.rotate(signers...)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.reads.Add(1)
		w.WriteHeader(int(s.status.Load()))
		_, _ = w.Write(*s.jwks.Load())
	}))
	t.Cleanup(func() {
		s.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return s
}

func (s *issuerServer) rotate(signers ...signer) {
	text := jwks(signers...)
	s.jwks.Store(&text)
}

func apiWith(t *testing.T, keys *auth.Keys, change ...func(*auth.TokensConfig)) *api {
	return newAPI(t, func(c *httpapi.Config) { c.Tokens = tokensWith(keys, change...) })
}

func TestKeys_OfAURLRotate(t *testing.T) {
	source := newIssuerServer(t, edKey())
	keys := running(t, auth.KeysConfig{Source: source.URL, Refresh: time.Hour, Gap: time.Nanosecond})
	eventually(t, "keys are read", func() bool { return keys.Ready(t.Context()) == nil })
	a := apiWith(t, keys)
	a.get("/api/v1/admin/vehicles").wants(200, "")

	// A new key is read for the first token that names it; the old one is removed by that read.
	source.rotate(edKey(), otherKey())
	a.get("/api/v1/admin/vehicles", withToken(otherKey().mint(claims(nil)))).wants(200, "")
	a.get("/api/v1/admin/vehicles").wants(200, "")
	source.rotate(rsaKey())
	a.get("/api/v1/admin/vehicles", withToken(rsaKey().mint(claims(nil)))).wants(200, "")
	a.get("/api/v1/admin/vehicles").wants(401, "unauthenticated")
}

func TestKeys_UnknownIDsCauseFewReads(t *testing.T) {
	source := newIssuerServer(t, edKey())
	keys := running(t, auth.KeysConfig{Source: source.URL, Gap: time.Hour})
	eventually(t, "keys are read", func() bool { return keys.Ready(t.Context()) == nil })
	a := apiWith(t, keys)
	for range 20 {
		a.get("/api/v1/admin/vehicles", withToken(otherKey().mint(claims(nil)))).wants(401, "unauthenticated")
	}
	same(t, source.reads.Load(), 1, "the source was read")
}

func TestKeys_StayValidWhileTheirSourceIsUnavailable(t *testing.T) {
	source := newIssuerServer(t, edKey())
	keys := running(t, auth.KeysConfig{Source: source.URL, Refresh: time.Millisecond})
	eventually(t, "keys are read", func() bool { return keys.Ready(t.Context()) == nil })
	source.status.Store(http.StatusInternalServerError)
	before := source.reads.Load()
	eventually(t, "the source fails twice", func() bool { return source.reads.Load() >= before+2 })
	apiWith(t, keys).get("/api/v1/admin/vehicles").wants(200, "")
}

func TestKeys_OfAFileMayAppearLaterAndChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwks.json")
	keys := running(t, auth.KeysConfig{Source: path, Refresh: 5 * time.Millisecond})
	a := apiWith(t, keys)
	r := a.post(lock).wants(503, "service_unavailable").wantsRetryAfter("10")
	if r.header.Get("WWW-Authenticate") != "" || keys.Ready(t.Context()) == nil {
		t.Errorf("headers %v, want no challenge, and the keys not ready", r.header)
	}
	replace(t, path, jwks(edKey()))
	eventually(t, "the file is read", func() bool { return keys.Ready(t.Context()) == nil })
	a.get("/api/v1/admin/vehicles").wants(200, "")
	replace(t, path, jwks(otherKey()))
	eventually(t, "the old key is refused", func() bool { return a.get("/api/v1/admin/vehicles").status == 401 })
	a.get("/api/v1/admin/vehicles", withToken(otherKey().mint(claims(nil)))).wants(200, "")
}

func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func TestKeys_PrivateKeysVerifyWithTheirPublicKeys(t *testing.T) {
	key := must(jwk.Import(edKey().private))
	require.NoError(t, key.Set(jwk.KeyIDKey, edKey().id))
	set := jwk.NewSet()
	require.NoError(t, set.AddKey(key))
	a := apiWith(t, loaded(t, auth.KeysConfig{Source: keyFile(t, must(json.Marshal(set)))}))
	a.get("/api/v1/admin/vehicles").wants(200, "")
}

func TestKeys_TokenWithoutKeyIDUsesTheOnlyKeyOfItsAlgorithm(t *testing.T) {
	nameless := signer{"", edKey().alg, edKey().private}
	one := apiWith(t, loaded(t, auth.KeysConfig{Source: keyFile(t, jwks(edKey(), rsaKey()))}))
	one.get("/api/v1/admin/vehicles", withToken(nameless.mint(claims(nil)))).wants(200, "")
	two := apiWith(t, loaded(t, auth.KeysConfig{Source: keyFile(t, jwks(edKey(), otherKey()))}))
	two.get("/api/v1/admin/vehicles", withToken(nameless.mint(claims(nil)))).wants(401, "unauthenticated")
}
