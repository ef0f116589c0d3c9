package auth

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"fmt"
	"testing"
)

func TestNewKeySet_IgnoresWeakAndUnusableKeys(t *testing.T) {
	modulus := func(bits int) string {
		n := make([]byte, bits/8) // only the size matters here
		_, _ = rand.Read(n)
		n[0], n[len(n)-1] = n[0]|0x80, n[len(n)-1]|1
		return base64.RawURLEncoding.EncodeToString(n)
	}
	good := modulus(2048)
	for name, key := range map[string]string{
		"1024 bits":        fmt.Sprintf(`{"kty":"RSA","e":"AQAB","n":%q}`, modulus(1024)),
		"for encryption":   fmt.Sprintf(`{"kty":"RSA","e":"AQAB","n":%q,"use":"enc"}`, good),
		"another alg":      fmt.Sprintf(`{"kty":"RSA","e":"AQAB","n":%q,"alg":"RS512"}`, good),
		"symmetric":        `{"kty":"oct","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"}`,
		"another curve":    `{"kty":"OKP","crv":"X25519","x":"hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo"}`,
		"off its curve":    `{"kty":"EC","crv":"P-256","x":"AA","y":"AA"}`,
		"unknown key type": `{"kty":"AKP"}`,
	} {
		if set, err := newKeySet([]byte(`{"keys":[` + key + `]}`)); err == nil {
			t.Errorf("%s: accepted as %v", name, set.keys)
		}
		both := fmt.Sprintf(`{"keys":[%s,{"kty":"RSA","kid":"good","e":"AQAB","n":%q,"use":"sig","alg":"RS256"}]}`, key, good)
		set, err := newKeySet([]byte(both))
		if err != nil || len(set.keys) != 1 || set.keys[0].id != "good" {
			t.Errorf("%s: the valid key next to it is missing: %v", name, err)
			continue
		}
		if _, ok := set.keys[0].public.(*rsa.PublicKey); !ok {
			t.Errorf("%s: the valid key is a %T", name, set.keys[0].public)
		}
	}
	for _, text := range []string{"", "{}", "[]", "<html>", `{"keys":[]}`, `{"keys":7}`} {
		if _, err := newKeySet([]byte(text)); err == nil {
			t.Errorf("%q was accepted as a key set", text)
		}
	}
}
