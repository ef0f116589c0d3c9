package signing

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"motorpool/internal/require"
)

func TestKeys_AreParsedAsEncoded(t *testing.T) {
	keys := []Key{newKey(t), newKey(t)}
	jwks, err := encodeKeys(keys...)
	require.NoError(t, err)
	if got, err := parseKeys(jwks); err != nil || !reflect.DeepEqual(got, keys) {
		t.Errorf("parsed as %v, %v", got, err)
	}
	if keys[0].ID == keys[1].ID || keys[0].Private.Equal(keys[1].Private) {
		t.Error("two new keys are the same")
	}
}

func TestKeyring_IsParsedAsEncoded(t *testing.T) {
	ring := Keyring{}
	for range 5 {
		maps.Copy(ring, newKey(t).Keyring())
	}
	jwks, err := EncodeKeyring(ring)
	require.NoError(t, err)
	if got, err := ParseKeyring(jwks); err != nil || !reflect.DeepEqual(got, ring) {
		t.Errorf("parsed as %v, %v", got, err)
	}
	again, err := EncodeKeyring(ring)
	if err != nil || !bytes.Equal(again, jwks) {
		t.Error("the keyring has another encoding the second time")
	}
	if bytes.Contains(jwks, []byte(`"d"`)) {
		t.Error("a public keyring has a private key")
	}
}

func TestGoldenKeys_PrivateAndPublicOnesAgree(t *testing.T) {
	keys, ring := goldenKeys(t)
	var ids []string
	for _, key := range keys {
		ids = append(ids, key.ID)
		if !ring[key.ID].Equal(key.Private.Public()) {
			t.Errorf("the public key of %s differs", key.ID)
		}
	}
	if !slices.Equal(ids, slices.Sorted(maps.Keys(ring))) {
		t.Errorf("private keys %v, public keys %v", ids, ring)
	}
}

func TestParseKeys_OtherKindsAreRefused(t *testing.T) {
	keys, ring := goldenKeys(t)
	private, err := encodeKeys(keys...)
	require.NoError(t, err)
	public, err := EncodeKeyring(ring)
	require.NoError(t, err)
	const x25519 = `{"keys":[{"kty":"OKP","crv":"X25519","kid":"k","x":"hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066SpjqqbTmo"}]}`
	const short = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"hSDwCYkwp1R0i33ctD73Wg2_Og0mOBr066Spjqqb"}]}`
	const shortSeed = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",` +
		`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAw"}]}`
	const symmetric = `{"keys":[{"kty":"oct","kid":"k","k":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}]}`
	noID := func(jwks []byte) string { return strings.ReplaceAll(string(jwks), `"kid"`, `"kod"`) }
	for name, jwks := range map[string]string{
		"empty": "", "null": "null", "an object without keys": "{}", "a list": "[]", "X25519": x25519, "too short a key": short,
		"too short a seed": shortSeed, "a secret": symmetric,
	} {
		if got, err := parseKeys([]byte(jwks)); err == nil {
			t.Errorf("%s was parsed as signing keys %v", name, got)
		}
		if got, err := ParseKeyring([]byte(jwks)); err == nil {
			t.Errorf("%s was parsed as a keyring %v", name, got)
		}
	}
	for name, jwks := range map[string]string{
		"public keys": string(public), "keys without an id": noID(private), "an empty set": `{"keys":[]}`,
	} {
		if got, err := parseKeys([]byte(jwks)); err == nil {
			t.Errorf("%s was parsed as signing keys %v", name, got)
		}
	}
	for name, jwks := range map[string]string{"private keys": string(private), "keys without an id": noID(public)} {
		if got, err := ParseKeyring([]byte(jwks)); err == nil {
			t.Errorf("%s: keyring %v", name, got)
		}
	}
}

func TestParseKeys_RepeatedIDIsRefused(t *testing.T) {
	keys, ring := goldenKeys(t)
	private, _ := encodeKeys(keys...)
	if got, err := parseKeys(bytes.ReplaceAll(private, []byte("fleet-2"), []byte("fleet-1"))); err == nil {
		t.Errorf("repeated IDs were parsed as signing keys %v", got)
	}
	public, _ := EncodeKeyring(ring)
	if got, err := ParseKeyring(bytes.ReplaceAll(public, []byte("fleet-2"), []byte("fleet-1"))); err == nil {
		t.Errorf("repeated IDs were parsed as a keyring %v", got)
	}
}

func TestParseKeys_PrivateKeyOfAnotherPublicKeyIsRefused(t *testing.T) {
	const mixed = `{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"PUAXw-hDiVqStwqnTRt-vJyYLM8uxJaMwM1V8Sr0Zgw",` +
		`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}]}`
	if got, err := parseKeys([]byte(mixed)); err == nil {
		t.Errorf("a private key with another public key was parsed as %v", got)
	}
}

func TestEncodeKeys_EmptyKeyIsRefused(t *testing.T) {
	if jwks, err := EncodeKeyring(Keyring{"k": nil}); err == nil {
		t.Errorf("a keyring with an empty key was encoded as %s", jwks)
	}
	if jwks, err := encodeKeys(Key{ID: "k"}); err == nil {
		t.Errorf("an empty signing key was encoded as %s", jwks)
	}
}

func TestKey_PrintsNoPrivateKey(t *testing.T) {
	key := newKey(t)
	var printed bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%T"} {
		for _, value := range []any{key, &key, []Key{key}, struct{ Key Key }{key}, map[string]Key{"k": key}} {
			fmt.Fprintf(&printed, verb+"\n", value)
		}
	}
	fmt.Fprintln(&printed, key, key.String())
	b, err := json.Marshal(map[string]any{"key": key, "pointer": &key})
	require.NoError(t, err)
	printed.Write(b)
	slog.New(slog.NewTextHandler(&printed, nil)).Info("text", "key", key, "pointer", &key)
	slog.New(slog.NewJSONHandler(&printed, nil)).Info("json", "key", key, "pointer", &key, "keys", []Key{key})

	if !strings.Contains(printed.String(), "signing key "+key.ID) {
		t.Error("a printed key does not have its ID")
	}
	seed := key.Private.Seed()
	for name, secret := range map[string]string{
		"raw": string(seed), "hexadecimal": hex.EncodeToString(seed), "base64": base64.StdEncoding.EncodeToString(seed)[:40],
		"base64 of the whole": base64.StdEncoding.EncodeToString(key.Private)[:40], "base64url": base64.RawURLEncoding.EncodeToString(seed),
		"decimal": strings.Trim(fmt.Sprintf("%d", seed), "[]"), "Go": strings.Trim(fmt.Sprintf("%#v", seed[:8]), "[]byte{}"),
	} {
		if strings.Contains(strings.ToLower(printed.String()), strings.ToLower(secret)) {
			t.Errorf("the private key was printed as %s", name)
		}
	}
	if len(seed) != ed25519.SeedSize {
		t.Errorf("the seed has %d bytes", len(seed))
	}
}

func parseKeys(jwks []byte) (keys []Key, err error) {
	chain, err := ParseKeychain(jwks)
	for _, k := range chain {
		keys = append(keys, k.Key)
	}
	return keys, err
}

func encodeKeys(keys ...Key) ([]byte, error) {
	var chain Keychain
	for _, k := range keys {
		chain = append(chain, FleetKey{Key: k})
	}
	return chain.Encode()
}
