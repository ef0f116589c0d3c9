package httpapi_test

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
	"github.com/lestrrat-go/jwx/v3/jws"
	"go.uber.org/goleak"

	"motorpool/httpapi/auth"
	"motorpool/internal/require"
)

const (
	issuer   = "https://login.example.com"
	audience = "motorpool"
)

// signer is a signing key of the issuer.
type signer struct {
	id      string
	alg     jwa.SignatureAlgorithm
	private any
}

var (
	edKey = sync.OnceValue(func() signer {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return signer{"ed-1", jwa.EdDSA(), must(private, err)}
	})
	rsaKey = sync.OnceValue(func() signer {
		return signer{"rsa-1", jwa.RS256(), must(rsa.GenerateKey(rand.Reader, 2048))}
	})
	ecKey = sync.OnceValue(func() signer {
		return signer{"ec-1", jwa.ES256(), must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))}
	})
	otherKey = sync.OnceValue(func() signer {
		_, private, err := ed25519.GenerateKey(rand.Reader)
		return signer{"ed-2", jwa.EdDSA(), must(private, err)}
	})
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// jwks returns the public keys as a JWKS.
func jwks(signers ...signer) []byte {
	set := jwk.NewSet()
	for _, s := range signers {
		key := must(jwk.PublicKeyOf(must(jwk.Import(s.private))))
		if s.id != "" {
			if err := key.Set(jwk.KeyIDKey, s.id); err != nil {
				panic(err)
			}
		}
		if err := set.AddKey(key); err != nil {
			panic(err)
		}
	}
	return must(json.Marshal(set))
}

// claimSet has the claims of a token.
type claimSet = map[string]any

// claims are those of an administrator of all agencies, with changes; nil removes a claim.
func claims(change map[string]any) map[string]any {
	c := map[string]any{
		"iss": issuer, "aud": audience, "sub": "admin-7", "role": "admin", "scope": "all_agencies",
		"exp": now.Add(time.Hour).Unix(), "nbf": now.Add(-time.Hour).Unix(), "iat": now.Add(-time.Hour).Unix(),
	}
	maps.Copy(c, change)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// mint returns a token with the claims.
func (s signer) mint(c map[string]any) string { return s.mintTyped("JWT", c) }

// mintTyped returns a token with the claims and the header parameter typ; absent: no typ.
func (s signer) mintTyped(typ string, c map[string]any) string {
	header := jws.NewHeaders()
	for name, value := range map[string]string{jws.TypeKey: typ, jws.KeyIDKey: s.id} {
		if value != "" {
			must(0, header.Set(name, value))
		}
	}
	return string(must(jws.Sign(must(json.Marshal(c)), jws.WithKey(s.alg, s.private, jws.WithProtectedHeaders(header)))))
}

var adminToken = sync.OnceValue(func() string { return edKey().mint(claims(nil)) })

// claiming sends an administrator's token with changed claims.
func claiming(change map[string]any) func(*http.Request) {
	return withToken(edKey().mint(claims(change)))
}

// ofAgency sends the token of an agency's administrator.
func ofAgency(agency int) func(*http.Request) {
	return claiming(claimSet{"sub": "admin-of-agency", "agency_id": agency})
}

// clientOf sends the token of a client.
func clientOf(agency int, subject string) func(*http.Request) {
	return claiming(claimSet{"sub": subject, "role": "client", "agency_id": agency})
}

// clientToken is the token of client-1 of agency 1.
var clientToken = sync.OnceValue(func() string {
	return edKey().mint(claims(claimSet{"sub": "client-1", "role": "client", "agency_id": 1}))
})

func byClient(r *http.Request) { withToken(clientToken())(r) }

// loaded returns keys that were read once from a source.
func loaded(t testing.TB, config auth.KeysConfig) *auth.Keys {
	t.Helper()
	config.Log = cmp.Or(config.Log, slog.New(slog.DiscardHandler))
	keys := auth.NewKeys(config)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- keys.Run(ctx) }()
	eventually(t, "keys are read", func() bool { return keys.Ready(ctx) == nil })
	cancel()
	require.NoError(t, <-ended)
	return keys
}

// keyFile writes a JWKS into a directory of the test.
func keyFile(t testing.TB, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "jwks.json")
	require.NoError(t, os.WriteFile(path, text, 0o600))
	return path
}

// validKeys are of all three algorithms.
var validKeys *auth.Keys

// TestMain reads them once, outside of virtual time.
func TestMain(m *testing.M) {
	file := must(os.CreateTemp("", "*.jwks"))
	_ = must(file.Write(jwks(edKey(), rsaKey(), ecKey())))
	validKeys = auth.NewKeys(auth.KeysConfig{Source: file.Name(), Log: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = validKeys.Run(ctx) })
	for validKeys.Ready(ctx) != nil {
		time.Sleep(time.Millisecond)
	}
	cancel()
	running.Wait()
	_ = file.Close()
	_ = os.Remove(file.Name())
	goleak.VerifyTestMain(m)
}

func tokensWith(keys *auth.Keys, change ...func(*auth.TokensConfig)) *auth.Tokens {
	config := auth.TokensConfig{Issuer: issuer, Audience: audience, Keys: keys, Now: func() time.Time { return now }}
	for _, c := range change {
		c(&config)
	}
	return auth.NewTokens(config)
}

// eventually polls until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	require.Late(t, "not in time: %s", what)
}
