package httpapi_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"motorpool/httpapi"
	"motorpool/httpapi/auth"
)

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
		ok(t, <-ended, "Run")
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

func apiWith(t *testing.T, keys *auth.Keys) *api {
	return newAPI(t, func(c *httpapi.Config) { c.Tokens = tokensWith(keys) })
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

func TestKeys_WithoutKeysRequestsAreUnavailable(t *testing.T) {
	source := newIssuerServer(t, edKey())
	source.status.Store(http.StatusBadGateway)
	keys := running(t, auth.KeysConfig{Source: source.URL})
	a := apiWith(t, keys)
	r := a.post(lock).wants(503, "service_unavailable").wantsRetryAfter("10")
	if r.header.Get("WWW-Authenticate") != "" || keys.Ready(t.Context()) == nil {
		t.Errorf("headers %v, want no challenge, and the keys not ready", r.header)
	}
	source.status.Store(http.StatusOK)
	eventually(t, "the source is read again", func() bool { return keys.Ready(t.Context()) == nil })
	a.post(lock).wants(200, "")
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
	a.get("/api/v1/admin/vehicles").wants(503, "service_unavailable")
	replace(t, path, jwks(edKey()))
	eventually(t, "the file is read", func() bool { return keys.Ready(t.Context()) == nil })
	a.get("/api/v1/admin/vehicles").wants(200, "")
	replace(t, path, jwks(otherKey()))
	eventually(t, "the old key is refused", func() bool { return a.get("/api/v1/admin/vehicles").status == 401 })
	a.get("/api/v1/admin/vehicles", withToken(otherKey().mint(claims(nil)))).wants(200, "")
}

func replace(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestKeys_PrivateKeysVerifyWithTheirPublicKeys(t *testing.T) {
	key := must(jwk.Import(edKey().private))
	if err := key.Set(jwk.KeyIDKey, edKey().id); err != nil {
		t.Fatal(err)
	}
	set := jwk.NewSet()
	if err := set.AddKey(key); err != nil {
		t.Fatal(err)
	}
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
