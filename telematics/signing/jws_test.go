package signing

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/telematics"
	"motorpool/telematics/wiretest"
)

func TestVerify_ReturnsTheSignedClaims(t *testing.T) {
	key := newKey(t)
	claims := telematics.Claims{
		Command: aCommand, Unit: "u", Action: telematics.ReportState, Lane: telematics.RefreshLane, Seq: 1 << 62, IssuedAt: now,
		Expires: now,
	}
	message, err := key.Sign(claims)
	require.NoError(t, err)
	if got, err := key.Keyring().Verify(message); err != nil || !reflect.DeepEqual(got, claims) {
		t.Errorf("verified as %+v, %v; want %+v", got, err, claims)
	}
}

// [CMD-1] [CMD-2] The bytes of the message, read without the library that wrote them.
func TestSign_MessageHasTheFormOfTheProtocol(t *testing.T) {
	keys, _ := goldenKeys(t)
	message, err := keys[1].Sign(goldenAttention)
	require.NoError(t, err)
	parts := strings.Split(string(message), ".")
	if len(parts) != 3 {
		t.Fatalf("the message has %d parts, want 3", len(parts))
	}
	assert.Equal(t, unbase64(t, parts[0]), `{"alg":"EdDSA","kid":"fleet-2","typ":"motorpool-command+jwt"}`, "header")
	if got, want := unbase64(t, parts[1]), `{"iss":"motorpool","aud":"356938035643809","jti":"0b6e5a4c-8f1d-4a7e-9c3b-2d1e0f9a8b01",`+
		`"iat":1767348000,"exp":1767348011,"cmd":"attention","params":{"signal":"both","duration_ms":1000},"lane":"attention","seq":43,`+
		`"tp":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}`; got != want {
		t.Errorf("claims %s, want %s", got, want)
	}
	if !ed25519.Verify(keys[1].Keyring()["fleet-2"], []byte(parts[0]+"."+parts[1]), []byte(unbase64(t, parts[2]))) {
		t.Error("the signature is not over header and claims")
	}
	lock, err := keys[0].Sign(goldenLock)
	require.NoError(t, err)
	if claims := unbase64(t, strings.Split(string(lock), ".")[1]); strings.Contains(claims, "params") || strings.Contains(claims, "tp") {
		t.Errorf("absent members are written: %s", claims)
	}
}

const validHeader = `{"alg":"EdDSA","kid":"fleet-1","typ":"motorpool-command+jwt"}`

// validClaims are valid claims of a lock, as text that tests change.
var validClaims = fmt.Sprintf(`{"iss":"motorpool","aud":"u","jti":"%s","iat":1,"exp":2,"cmd":"lock","lane":"access","seq":1}`, aCommand)

// Each message is signed by a key that the unit trusts: only its form is wrong.
func TestVerify_WrongFormIsRefusedAlsoFromATrustedKey(t *testing.T) {
	keys, ring := goldenKeys(t)
	if _, err := ring.Verify(signedRaw(keys[0], validHeader, validClaims)); err != nil {
		t.Fatalf("the valid message is refused: %v", err)
	}
	header := func(members string) string { return `{` + members + `}` }
	for name, message := range map[string][]byte{
		"no type":              signedRaw(keys[0], header(`"alg":"EdDSA","kid":"fleet-1"`), validClaims),
		"another type":         signedRaw(keys[0], header(`"alg":"EdDSA","kid":"fleet-1","typ":"JWT"`), validClaims),
		"no key id":            signedRaw(keys[0], header(`"alg":"EdDSA","typ":"motorpool-command+jwt"`), validClaims),
		"an unknown key id":    signedRaw(keys[0], header(`"alg":"EdDSA","kid":"fleet-3","typ":"motorpool-command+jwt"`), validClaims),
		"another key's id":     signedRaw(keys[0], header(`"alg":"EdDSA","kid":"fleet-2","typ":"motorpool-command+jwt"`), validClaims),
		"no algorithm":         signedRaw(keys[0], header(`"kid":"fleet-1","typ":"motorpool-command+jwt"`), validClaims),
		"algorithm none":       signedRaw(keys[0], header(`"alg":"none","kid":"fleet-1","typ":"motorpool-command+jwt"`), validClaims),
		"another algorithm":    signedRaw(keys[0], header(`"alg":"HS256","kid":"fleet-1","typ":"motorpool-command+jwt"`), validClaims),
		"an unknown algorithm": signedRaw(keys[0], header(`"alg":"X","kid":"fleet-1","typ":"motorpool-command+jwt"`), validClaims),
		"a critical extension": signedRaw(keys[0],
			header(`"alg":"EdDSA","crit":["x"],"x":1,"kid":"fleet-1","typ":"motorpool-command+jwt"`), validClaims),
		"an unencoded payload": signedRaw(keys[0],
			header(`"alg":"EdDSA","crit":["b64"],"b64":false,"kid":"fleet-1","typ":"motorpool-command+jwt"`), validClaims),
		"a header that is a list": signedRaw(keys[0], `[]`, validClaims),
		"a header that is null":   signedRaw(keys[0], `null`, validClaims),
		"claims that are a list":  signedRaw(keys[0], validHeader, `[]`),
		"null claims":             signedRaw(keys[0], validHeader, `null`),
		"another issuer":          signedRaw(keys[0], validHeader, strings.Replace(validClaims, `"motorpool"`, `"mallory"`, 1)),
		"no command id":           signedRaw(keys[0], validHeader, strings.Replace(validClaims, aCommand.String(), "1", 1)),
		"a fractional expiry":     signedRaw(keys[0], validHeader, strings.Replace(validClaims, `"exp":2`, `"exp":2.5`, 1)),
		"a list of audiences":     signedRaw(keys[0], validHeader, strings.Replace(validClaims, `"aud":"u"`, `"aud":["u"]`, 1)),
	} {
		if claims, err := ring.Verify(message); !errors.Is(err, ErrBadSignature) || claims != (telematics.Claims{}) {
			t.Errorf("%s: %+v, %v; want ErrBadSignature", name, claims, err)
		}
	}
}

func TestVerify_AnyChangedByteIsRefused(t *testing.T) {
	key := newKey(t)
	message, err := key.Sign(goldenLock)
	require.NoError(t, err)
	for i := range message {
		changed := bytes.Clone(message)
		changed[i] ^= 1
		claims, err := key.Keyring().Verify(changed)
		// The last character of base64 may have unused bits.
		if err == nil && !reflect.DeepEqual(claims, goldenLock) {
			t.Fatalf("with byte %d changed, verified as %+v", i, claims)
		}
		if err == nil && !bytes.Equal(decodedParts(t, changed), decodedParts(t, message)) {
			t.Fatalf("with byte %d changed, the message is still accepted", i)
		}
	}
}

func TestVerify_KeyringOfTwoKeysAcceptsBoth(t *testing.T) {
	keys, both := goldenKeys(t)
	for i, key := range keys {
		message, err := key.Sign(goldenLock)
		require.NoError(t, err)
		if _, err := both.Verify(message); err != nil {
			t.Errorf("key %d: the keyring of both keys refuses: %v", i, err)
		}
		if _, err := keys[1-i].Keyring().Verify(message); !errors.Is(err, ErrBadSignature) {
			t.Errorf("key %d: the keyring of the other key: %v, want ErrBadSignature", i, err)
		}
		if _, err := (Keyring{}).Verify(message); !errors.Is(err, ErrBadSignature) {
			t.Errorf("key %d: an empty keyring: %v, want ErrBadSignature", i, err)
		}
	}
	old := Keyring{keys[0].ID: both[keys[1].ID]} // the same ID with another key
	message, _ := keys[0].Sign(goldenLock)
	if _, err := old.Verify(message); !errors.Is(err, ErrBadSignature) {
		t.Errorf("another key with the same ID: %v, want ErrBadSignature", err)
	}
}

func TestVerify_OnlyTheCompactFormIsAccepted(t *testing.T) {
	keys, ring := goldenKeys(t)
	compact := signedRaw(keys[0], validHeader, validClaims)
	p := strings.Split(string(compact), ".")
	flat := fmt.Sprintf(`{"payload":"%s","protected":"%s","signature":"%s"}`, p[1], p[0], p[2])
	general := fmt.Sprintf(`{"payload":"%s","signatures":[{"protected":"%s","signature":"%s"}]}`, p[1], p[0], p[2])
	for name, message := range map[string]string{
		"flattened JSON": flat, "general JSON": general, "four parts": string(compact) + ".e30", "two parts": p[0] + "." + p[1],
		"no signature": p[0] + "." + p[1] + ".", "detached": p[0] + ".." + p[2], "empty": "", "dots": "..", "plain claims": validClaims,
		"padded": p[0] + "=." + p[1] + "." + p[2], "leading space": " " + string(compact),
		"too large": string(compact) + strings.Repeat(" ", telematics.MaxMessage),
	} {
		if claims, err := ring.Verify([]byte(message)); !errors.Is(err, ErrBadSignature) {
			t.Errorf("%s: %+v, %v; want ErrBadSignature", name, claims, err)
		}
	}
}

func TestSign_EmptyKeyIsRefused(t *testing.T) {
	if message, err := (Key{ID: "x"}).Sign(goldenLock); err == nil {
		t.Errorf("an empty key signed %s", message)
	}
}

func TestSign_TimesAreWholeSeconds(t *testing.T) {
	key := newKey(t)
	message, err := key.Sign(telematics.Claims{Command: aCommand, IssuedAt: now.Add(999 * time.Millisecond), Expires: now.Add(time.Second)})
	require.NoError(t, err)
	var claims struct{ Iat, Exp json.Number }
	require.NoError(t, json.Unmarshal([]byte(unbase64(t, strings.Split(string(message), ".")[1])), &claims))
	if claims.Iat != "1767348000" || claims.Exp != "1767348001" {
		t.Errorf("iat %s and exp %s, want whole seconds", claims.Iat, claims.Exp)
	}
}

// signedRaw signs any header and claims, which the library would not.
func signedRaw(key Key, header, claims string) []byte {
	b64 := base64.RawURLEncoding.EncodeToString
	input := b64([]byte(header)) + "." + b64([]byte(claims))
	return []byte(input + "." + b64(ed25519.Sign(key.Private, []byte(input))))
}

func newKey(t *testing.T) Key {
	t.Helper()
	key, err := NewKey()
	require.NoError(t, err)
	return key
}

func unbase64(t *testing.T, s string) string {
	t.Helper()
	b, err := base64.RawURLEncoding.DecodeString(s)
	require.NoError(t, err)
	return string(b)
}

func decodedParts(t *testing.T, message []byte) []byte {
	t.Helper()
	var all []byte
	for part := range bytes.SplitSeq(message, []byte(".")) {
		all = append(append(all, unbase64(t, string(part))...), '.')
	}
	return all
}

func FuzzVerify(f *testing.F) {
	wiretest.Seed(f, "command-*.jws")
	_, ring := goldenKeys(f)
	signed := goldenSigned()
	f.Fuzz(func(t *testing.T, message []byte) {
		claims, err := ring.Verify(message)
		if err != nil {
			return
		}
		for _, c := range signed {
			if reflect.DeepEqual(claims, c) {
				return
			}
		}
		t.Errorf("a message that was not signed is accepted: %s as %+v", message, claims)
	})
}
