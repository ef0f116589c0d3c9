package signin_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"github.com/lestrrat-go/jwx/v3/jwt"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

const (
	clientID     = "console"
	clientSecret = "hush"
	audience     = "motorpool"
)

// fakeIssuer is an OpenID Connect provider with one account, which is always signed in. A refresh
// token is valid once.
type fakeIssuer struct {
	*httptest.Server
	t   *testing.T
	key jwk.Key

	mu       sync.Mutex
	claims   map[string]any     // guarded by mu: further claims of access tokens
	lifetime time.Duration      // guarded by mu: lifetime of access tokens
	status   int                // guarded by mu: status of every token request; 0: by the request
	code     string             // guarded by mu: error of every token request with a status
	own      map[string]any     // guarded by mu: further claims of ID tokens
	namesIss bool               // guarded by mu: whether it announces iss in each callback
	tokens   int                // guarded by mu: token requests
	before   func(grant string) // guarded by mu: called before a token request is served
	codes    map[string]url.Values
	refresh  map[string]bool
	renewals int
}

func newKey(t *testing.T, id string) jwk.Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	key := must(jwk.Import(private))
	for name, value := range map[string]any{jwk.KeyIDKey: id, jwk.AlgorithmKey: jwa.ES256()} {
		require.NoError(t, key.Set(name, value))
	}
	return key
}

func startIssuer(t *testing.T) *fakeIssuer {
	t.Helper()
	i := &fakeIssuer{
		t: t, key: newKey(t, "k1"), lifetime: time.Hour, codes: map[string]url.Values{}, refresh: map[string]bool{},
		claims: map[string]any{"role": "operator", "agency_id": 7},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, 200, map[string]any{
			"issuer": i.URL, "authorization_endpoint": i.URL + "/authorize",
			"token_endpoint": i.URL + "/token", "jwks_uri": i.URL + "/keys",
			"authorization_response_iss_parameter_supported": i.namesIss,
			"end_session_endpoint":                           i.URL + "/out?x=1",
			"id_token_signing_alg_values_supported":          []string{"ES256"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { i.answer(w, 200, i.publicKeys()) })
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

func (i *fakeIssuer) publicKeys() map[string]any {
	public, err := i.key.PublicKey()
	assert.NoError(i.t, err)
	return map[string]any{"keys": []any{public}}
}

func (i *fakeIssuer) keyFile() string {
	text := must(json.Marshal(i.publicKeys()))
	file := filepath.Join(i.t.TempDir(), "keys.jwks")
	require.NoError(i.t, os.WriteFile(file, text, 0o600))
	return file
}

func (i *fakeIssuer) answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	assert.NoError(i.t, json.NewEncoder(w).Encode(body), "json.NewEncoder(w).Encode(body)")
}

// authorize redirects the browser back with a code.
func (i *fakeIssuer) authorize(w http.ResponseWriter, r *http.Request) {
	asked := r.URL.Query()
	for name, want := range map[string]string{"response_type": "code", "client_id": clientID, "scope": "openid offline_access",
		"code_challenge_method": "S256", "audience": audience, "resource": audience} {
		assert.DeepEqual(i.t, asked.Get(name), want, "authorization request: %s", name)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	code := rand.Text()
	i.codes[code] = asked
	back := url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {i.URL}}
	http.Redirect(w, r, asked.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *fakeIssuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.tokens++
	if before := i.before; before != nil {
		i.mu.Unlock()
		before(r.PostFormValue("grant_type"))
		i.mu.Lock()
	}
	if i.status != 0 {
		i.answer(w, i.status, map[string]any{"error": i.code})
		return
	}
	user, password, basic := r.BasicAuth()
	if !basic {
		user, password = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	nonce := ""
	good := user == clientID && password == clientSecret
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		asked, known := i.codes[r.PostFormValue("code")]
		delete(i.codes, r.PostFormValue("code"))
		challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		good = good && known && asked.Get("code_challenge") == base64.RawURLEncoding.EncodeToString(challenge[:]) &&
			asked.Get("redirect_uri") == r.PostFormValue("redirect_uri")
		nonce = asked.Get("nonce")
	case "refresh_token":
		i.renewals++
		good = good && i.refresh[r.PostFormValue("refresh_token")]
		delete(i.refresh, r.PostFormValue("refresh_token"))
	default:
		good = false
	}
	if !good {
		i.answer(w, http.StatusBadRequest, map[string]any{"error": "invalid_grant"})
		return
	}
	refresh := rand.Text()
	i.refresh[refresh] = true
	own := map[string]any{
		"iss": i.URL, "aud": clientID, "sub": "zoe", "exp": time.Now().Add(time.Hour).Unix(),
		"iat": time.Now().Unix(), "nonce": nonce,
	}
	access := map[string]any{"iss": i.URL, "aud": audience, "sub": "zoe", "exp": time.Now().Add(time.Hour).Unix(), "jti": rand.Text()}
	maps.Copy(access, i.claims)
	maps.Copy(own, i.own)
	i.answer(w, 200, map[string]any{
		"access_token": i.sign(access), "token_type": "Bearer", "expires_in": int(i.lifetime.Seconds()), "refresh_token": refresh,
		"id_token": i.sign(own),
	})
}

func (i *fakeIssuer) sign(claims map[string]any) string {
	token := jwt.New()
	for name, value := range claims {
		assert.NoError(i.t, token.Set(name, value), "token.Set(name, value)")
	}
	headers := jws.NewHeaders()
	assert.NoError(i.t, headers.Set(jws.TypeKey, "JWT"), "headers.Set(jws.TypeKey, \"JWT\")")
	signed, err := jwt.Sign(token, jwt.WithKey(jwa.ES256(), i.key, jws.WithProtectedHeaders(headers)))
	assert.NoError(i.t, err)
	return string(signed)
}

func (i *fakeIssuer) set(change func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	change()
}

// requests returns the number of token requests.
func (i *fakeIssuer) requests() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tokens
}

// replaceKey signs tokens with a new key.
func (i *fakeIssuer) replaceKey() {
	i.t.Helper()
	key := newKey(i.t, "k2")
	i.set(func() { i.key = key })
}
