package httpapi_test

import (
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jws"

	"motorpool/httpapi/auth"
	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
)

func TestTokens_OfAllThreeAlgorithmsAreAccepted(t *testing.T) {
	a := newAPI(t)
	for _, key := range []signer{edKey(), rsaKey(), ecKey()} {
		for range 2 { // the second time from the cache
			a.get("/api/v1/admin/vehicles", withToken(key.mint(claims(nil)))).wants(200, "")
		}
	}
}

func TestTokens_NameTheActor(t *testing.T) {
	a := newAPI(t)
	a.post(lock, claiming(claimSet{"sub": "Zoë", "agency_id": 3, "aud": []string{"x", audience}})).wants(200, "")
	assert.Equal(t, a.controller.last().Actor, (telematics.Actor{Subject: "Zoë", Role: telematics.Admin, Agency: 3}), "actor")
	a.post(lock, withHeader("Authorization", ""), func(r *http.Request) { r.Header.Set("Authorization", "bEARER  "+adminToken()) }).
		wants(200, "")
	a.post(lock, claiming(claimSet{"agency_id": nil, "nbf": nil, "iat": nil})).wants(200, "")
}

func TestTokens_TypeIsPinned(t *testing.T) {
	keys := loaded(t, auth.KeysConfig{Source: keyFile(t, jwks(edKey()))})
	a := newAPI(t)
	lax := apiWith(t, keys, func(c *auth.TokensConfig) { c.Types = []string{"at+jwt", auth.AbsentType} })
	for _, c := range []struct {
		typ            string
		standard, open int
	}{
		{"JWT", 200, 401}, {"jwt", 200, 401}, {"at+jwt", 200, 200}, {"AT+JWT", 200, 200}, {"application/at+jwt", 200, 200},
		{"", 401, 200}, {"absent", 401, 401}, {"logout+jwt", 401, 401}, {"motorpool-command+jwt", 401, 401}, {"dpop+jwt", 401, 401},
	} {
		token := withToken(edKey().mintTyped(c.typ, claims(nil)))
		a.get("/api/v1/admin/vehicles", token).answers(c.standard)
		if r := lax.get("/api/v1/admin/vehicles", token); r.status != c.open {
			t.Errorf("typ %q, where a token without typ is accepted: %d %s, want %d", c.typ, r.status, r.body.Message, c.open)
		}
	}
}

const sayWhichAgency = "The access token of an administrator must have agency_id, the id of its agency; " +
	"or, to see all agencies, all_agencies in scope."

const (
	wrongAlgorithm = "The access token must be signed with RS256, ES256 or EdDSA."
	unknownKey     = "The access token is signed with a key that is not known here."
)

func TestAuth_ABadTokenIsRefused(t *testing.T) {
	minted := func(change claimSet) string { return edKey().mint(claims(change)) }
	typed := func(typ string) string { return edKey().mintTyped(typ, claims(nil)) }
	seconds := func(n int) int64 { return now.Add(time.Duration(n) * time.Second).Unix() }
	forged := otherKey()
	forged.id = edKey().id
	for name, c := range map[string]struct {
		token string
		why   string
	}{
		"expired":         {minted(claimSet{"exp": seconds(-61)}), "The access token has expired."},
		"not yet valid":   {minted(claimSet{"nbf": seconds(62)}), "The access token is not valid yet."},
		"from the future": {minted(claimSet{"iat": seconds(62)}), "The access token is not valid yet."},
		"exp in milliseconds": {minted(claimSet{"exp": seconds(0) * 1000}),
			"The access token's exp must be in seconds since 1970; this one never ends."},
		"without end":         {minted(claimSet{"exp": nil}), "The access token is not valid."},
		"another issuer":      {minted(claimSet{"iss": "x"}), "The access token is of another issuer."},
		"no issuer":           {minted(claimSet{"iss": nil}), ""},
		"another audience":    {minted(claimSet{"aud": []string{"x"}}), "The access token is for another audience."},
		"no audience":         {minted(claimSet{"aud": nil}), ""},
		"no subject":          {minted(claimSet{"sub": nil}), ""},
		"empty subject":       {minted(claimSet{"sub": ""}), ""},
		"subject with NUL":    {minted(claimSet{"sub": "a\x00b"}), ""},
		"long subject":        {minted(claimSet{"sub": strings.Repeat("x", 256)}), ""},
		"subject no text":     {minted(claimSet{"sub": 7}), ""},
		"role no text":        {minted(claimSet{"role": 7}), "The access token's role is neither a string nor an array of strings."},
		"two roles":           {minted(claimSet{"role": []string{"admin", "client"}}), ""},
		"role array of none":  {minted(claimSet{"role": []any{"admin", 7}}), ""},
		"agency zero":         {minted(claimSet{"agency_id": 0}), ""},
		"agency negative":     {minted(claimSet{"agency_id": -1}), ""},
		"agency text":         {minted(claimSet{"agency_id": "one"}), ""},
		"agency text 01":      {minted(claimSet{"agency_id": "01"}), ""},
		"two agencies":        {minted(claimSet{"agency_id": []int{1, 2}}), ""},
		"no agencies":         {minted(claimSet{"agency_id": []int{}}), ""},
		"admin of no agency":  {minted(claimSet{"scope": nil}), sayWhichAgency},
		"misspelt agency":     {minted(claimSet{"scope": nil, "agencyid": 1}), sayWhichAgency},
		"another scope":       {minted(claimSet{"scope": "openid all_agencies_read"}), sayWhichAgency},
		"scope of all, alike": {minted(claimSet{"scope": "All_Agencies"}), sayWhichAgency},
		"scope no text":       {minted(claimSet{"scope": true}), "The access token's scope is neither a string nor an array of strings."},
		"logout token": {typed("logout+jwt"), `The token is of type "logout+jwt", not an access token; ` +
			`typ must be one of at+jwt, JWT.`},
		"command":             {typed("motorpool-command+jwt"), ""},
		"id token's type":     {typed("ID"), ""},
		"type absent":         {typed("absent"), ""},
		"no type":             {typed(""), "The access token has no typ; it must be one of at+jwt, JWT."},
		"agency fraction":     {minted(claimSet{"agency_id": 1.5}), ""},
		"agency huge":         {minted(claimSet{"agency_id": 1e18}), ""},
		"agency null":         {edKey().mint(withNull(claims(nil), "agency_id")), ""},
		"client of no agency": {minted(claimSet{"role": "client"}), "The access token of a client must have agency_id."},
		"unknown key":         {otherKey().mint(claims(nil)), unknownKey},
		"forged":              {forged.mint(claims(nil)), "The access token is not valid."},
		"no key id of three": {signer{"", edKey().alg, edKey().private}.mint(claims(claimSet{"exp": seconds(-999)})),
			"The access token has expired."},
		"another key's id":   {signer{"rsa-1", edKey().alg, edKey().private}.mint(claims(nil)), unknownKey},
		"RS384":              {signer{"rsa-1", jwa.RS384(), rsaKey().private}.mint(claims(nil)), wrongAlgorithm},
		"PS256":              {signer{"rsa-1", jwa.PS256(), rsaKey().private}.mint(claims(nil)), wrongAlgorithm},
		"alg none":           {unsigned(claims(nil)), wrongAlgorithm},
		"alg none, unsigned": {unsigned(claims(nil)) + "x", ""},
		"HS256 with our key": {confused(t, claims(nil)), wrongAlgorithm},
		"critical header":    {critical(t, claims(nil)), "The access token has critical header parameters that are not known here."},
		"tampered":           {tampered(adminToken()), "The access token is not valid."},
		"no JWT":             {"abc", "The access token is not a JWT."},
		"three empty parts":  {"..", "The access token is not a JWT."},
		"five parts":         {"a.b.c.d.e", "The access token is not a JWT."},
		"padding":            {adminToken() + "=", "The access token is not a JWT."},
		"too long":           {minted(claimSet{"x": strings.Repeat("x", 9000)}), "The access token is longer than 8192 bytes."},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			r := a.post(lock, withToken(c.token)).wants(401, "unauthenticated")
			if got := r.header.Get("WWW-Authenticate"); !strings.HasPrefix(got,
				`Bearer realm="motorpool", error="invalid_token", error_description="`) {
				t.Errorf("challenge %q", got)
			}
			if c.why != "" && r.body.Message != c.why {
				t.Errorf("message %q, want %q", r.body.Message, c.why)
			}
			same(t, a.controller.count(), 0, "orders")
			a.wantsEntries()
			if strings.Contains(a.log.String(), c.token) && len(c.token) > 10 {
				t.Error("the token is in the log")
			}
		})
	}
}

func withNull(c map[string]any, name string) map[string]any {
	c[name] = nil
	return c
}

func part(v any) string { return base64.RawURLEncoding.EncodeToString(must(json.Marshal(v))) }

func unsigned(c map[string]any) string {
	return part(map[string]any{"alg": "none", "kid": "ed-1"}) + "." + part(c) + "."
}

// confused signs with the public key as if it were a shared secret (HS256).
func confused(t *testing.T, c map[string]any) string {
	public := must(x509.MarshalPKIXPublicKey(&rsaKey().private.(*rsa.PrivateKey).PublicKey))
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})
	header := jws.NewHeaders()
	require.NoError(t, header.Set(jws.KeyIDKey, "rsa-1"))
	return string(must(jws.Sign(must(json.Marshal(c)), jws.WithKey(jwa.HS256(), secret, jws.WithProtectedHeaders(header)))))
}

// critical requires an extension that is not supported.
func critical(t *testing.T, c map[string]any) string {
	header := jws.NewHeaders()
	for name, value := range map[string]any{jws.TypeKey: "JWT", jws.KeyIDKey: edKey().id, jws.CriticalKey: []string{"x"}, "x": 1} {
		require.NoError(t, header.Set(name, value))
	}
	return string(must(jws.Sign(must(json.Marshal(c)), jws.WithKey(edKey().alg, edKey().private, jws.WithProtectedHeaders(header)))))
}

func tampered(token string) string {
	parts := strings.Split(token, ".")
	return parts[0] + "." + part(claims(claimSet{"sub": "someone-else"})) + "." + parts[2]
}

func TestTokens_MissingOneGetsAChallengeWithoutError(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"none":   anonymous,
		"empty":  func(r *http.Request) { r.Header.Set("Authorization", "") },
		"basic":  func(r *http.Request) { r.Header.Set("Authorization", "Basic YTpi") },
		"glued":  func(r *http.Request) { r.Header.Set("Authorization", "Bearer"+adminToken()) },
		"cookie": func(r *http.Request) { anonymous(r); r.Header.Set("Cookie", "access_token="+adminToken()) },
		"query":  func(r *http.Request) { anonymous(r); r.URL.RawQuery = "access_token=" + adminToken() },
	} {
		a := newAPI(t)
		r := a.post(lock, change).wants(401, "unauthenticated")
		same(t, r.header.Get("WWW-Authenticate"), `Bearer realm="motorpool"`, "%s: challenge", name)
		if strings.Contains(a.log.String(), "eyJ") {
			t.Errorf("%s: the token is in the log", name)
		}
	}
	// Two headers with a token.
	newAPI(t).post(lock, withHeader("Authorization", "Bearer a.b.c")).wants(401, "unauthenticated")
}

func TestAuth_CallerWithoutARoleAddsNoEntry(t *testing.T) {
	a := newAPI(t)
	for _, role := range []any{"system", "Admin", "", nil} {
		a.post(lock, claiming(claimSet{"role": role})).wants(403, "forbidden")
	}
	a.wantsEntries()
}

func TestTokens_TimesHaveAMinuteOfLeeway(t *testing.T) {
	a := newAPI(t)
	for _, c := range []map[string]any{
		{"exp": now.Add(-59 * time.Second).Unix()},
		{"nbf": now.Add(59 * time.Second).Unix()},
		{"iat": now.Add(59 * time.Second).Unix()},
	} {
		a.get("/api/v1/admin/vehicles", claiming(c)).wants(200, "")
	}
}

func TestTokens_CachedOneStillExpires(t *testing.T) {
	clock := now
	keys := loaded(t, auth.KeysConfig{Source: keyFile(t, jwks(edKey()))})
	a := apiWith(t, keys, func(c *auth.TokensConfig) { c.Now = func() time.Time { return clock } })
	token := claiming(claimSet{"exp": now.Add(time.Minute).Unix()})
	a.get("/api/v1/admin/vehicles", token).wants(200, "")
	clock = now.Add(119 * time.Second)
	a.get("/api/v1/admin/vehicles", token).wants(200, "")
	clock = now.Add(121 * time.Second)
	r := a.get("/api/v1/admin/vehicles", token).wants(401, "unauthenticated")
	r.says("The access token has expired.")
}
