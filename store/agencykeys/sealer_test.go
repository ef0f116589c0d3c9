package agencykeys

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"motorpool/internal/require"
	"motorpool/store/unavailable"
)

const (
	sealKeyA = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	sealKeyB = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
)

func sealer(tb testing.TB, keys ...string) *Sealer {
	tb.Helper()
	s, err := NewSealer(strings.Join(keys, ","))
	require.NoError(tb, err)
	return s
}

func TestNewSealer_ReadsEveryFormOfAKey(t *testing.T) {
	raw, err := hex.DecodeString(sealKeyB)
	require.NoError(t, err)
	sealed, err := sealer(t, sealKeyB).seal([]byte("secret"), "owner")
	require.NoError(t, err)
	for _, text := range []string{
		sealKeyB, strings.ToUpper(sealKeyB), " " + sealKeyB + "\n", base64.StdEncoding.EncodeToString(raw),
		base64.RawStdEncoding.EncodeToString(raw),
		base64.URLEncoding.EncodeToString(raw), base64.RawURLEncoding.EncodeToString(raw), sealKeyA + " , " + sealKeyB,
	} {
		if secret, _, err := sealer(t, text).open(sealed, "owner"); err != nil || string(secret) != "secret" {
			t.Errorf("key %q: opened as %q, %v", text, secret, err)
		}
	}
	for name, text := range map[string]string{
		"short": sealKeyA[2:], "long": sealKeyA + "00", "trailing comma": sealKeyA + ",", "not hex or base64": strings.Repeat("?", 64),
		"passphrase": "correct horse battery staple", "16 bytes": sealKeyA[:32], "invalid second key": sealKeyA + ",hush",
	} {
		if _, err := NewSealer(text); err == nil || strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: error %v, want one that does not quote the key", name, err)
		}
	}
}

func TestSealer_ASealedSecretOpensOnlyAsItsOwners(t *testing.T) {
	s, secret := sealer(t, sealKeyA), []byte("a secret of thirty-two bytes ...")
	one, err := s.seal(secret, "one")
	require.NoError(t, err)
	again, err := s.seal(secret, "one")
	if err != nil || bytes.Equal(one, again) || bytes.Contains(one, secret) {
		t.Errorf("sealed twice: %x and %x, %v; want different texts without the secret", one, again, err)
	}
	if got, first, err := s.open(one, "one"); err != nil || !first || !bytes.Equal(got, secret) {
		t.Errorf("opened as %q, by the first key %v, %v", got, first, err)
	}
	for i := range one {
		broken := bytes.Clone(one)
		broken[i] ^= 1
		if _, _, err := s.open(broken, "one"); !unavailable.Is(err) {
			t.Errorf("with byte %d changed: %v, want unavailable", i, err)
		}
	}
	for name, sealed := range map[string][]byte{
		"empty": nil, "form byte only": {sealedGCM}, "truncated": one[:len(one)-1], "with a trailing byte": append(bytes.Clone(one), 0),
	} {
		if _, _, err := s.open(sealed, "one"); !unavailable.Is(err) {
			t.Errorf("%s: %v, want unavailable", name, err)
		}
	}
	if _, _, err := s.open(one, "two"); !unavailable.Is(err) {
		t.Errorf("the secret of another key: %v, want unavailable", err)
	}
	if _, _, err := sealer(t, sealKeyB).open(one, "one"); !unavailable.Is(err) || !strings.Contains(err.Error(), "--agency-secrets-key") {
		t.Errorf("with another sealing key: %v, want unavailable", err)
	}
}

func TestSealer_FirstKeySealsAndAllOpen(t *testing.T) {
	old, err := sealer(t, sealKeyA).seal([]byte("secret"), "owner")
	require.NoError(t, err)
	both := sealer(t, sealKeyB, sealKeyA)
	if secret, first, err := both.open(old, "owner"); err != nil || first || string(secret) != "secret" {
		t.Errorf("opened as %q, by the first key %v, %v; want the second key to open it", secret, first, err)
	}
	sealed, err := both.seal([]byte("secret"), "owner")
	require.NoError(t, err)
	if _, first, err := sealer(t, sealKeyB).open(sealed, "owner"); err != nil || !first {
		t.Errorf("the first key did not seal: %v", err)
	}
}

func TestSealer_WithoutAKeyIsUnavailable(t *testing.T) {
	for name, s := range map[string]*Sealer{"nil": nil, "zero": {}, "empty": sealer(t, " ")} {
		if _, err := s.seal([]byte("secret"), "owner"); !unavailable.Is(err) || !strings.Contains(err.Error(), "--agency-secrets-key") {
			t.Errorf("%s: seal = %v, want unavailable", name, err)
		}
		if _, _, err := s.open([]byte{sealedGCM}, "owner"); !unavailable.Is(err) {
			t.Errorf("%s: open = %v, want unavailable", name, err)
		}
	}
}
