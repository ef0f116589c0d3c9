package signing

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/telematics"
)

var monday = time.Date(2026, 1, 5, 9, 0, 0, 0, time.UTC)

// chain returns a keychain of new keys with the given IDs, created a day apart.
func chain(t *testing.T, ids ...string) Keychain {
	t.Helper()
	var c Keychain
	for i, id := range ids {
		key := newKey(t)
		key.ID = id
		var err error
		if c, err = c.Add(key, monday.AddDate(0, 0, i)); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func ids(c Keychain) (ids []string) {
	for _, k := range c {
		ids = append(ids, k.ID)
	}
	return ids
}

func TestKeychain_FirstKeyIsActiveAndNewOnesAreOnStandby(t *testing.T) {
	c := chain(t, "a", "b")
	if c.Active().ID != "a" || c.State(0) != "active" || c.State(1) != "standby" {
		t.Errorf("keychain %v, want a active and b on standby", c)
	}
	if !c[0].Activated.Equal(monday) || !c[1].Activated.IsZero() || !c[1].Created.Equal(monday.AddDate(0, 0, 1)) {
		t.Errorf("a was activated %v, b %v", c[0].Activated, c[1].Activated)
	}
	if ring := c.Keyring(); len(ring) != 2 || !ring["b"].Equal(c[1].Private.Public()) {
		t.Errorf("the keyring has %v, want both public keys", ring)
	}
}

func TestKeychain_ActiveKeySigns(t *testing.T) {
	c := chain(t, "a", "b")
	claims := telematics.Claims{
		Command: [16]byte{1}, Unit: "u", Action: telematics.Lock, Lane: telematics.AccessLane,
		Expires: monday.Add(time.Minute), IssuedAt: monday,
	}
	for _, want := range []string{"a", "b"} {
		c, err := c.Activate(want, monday)
		require.NoError(t, err)
		message, err := c.Sign(claims)
		require.NoError(t, err)
		if _, err := (Keyring{want: c.Keyring()[want]}).Verify(message); err != nil {
			t.Errorf("%s is active, but did not sign: %v", want, err)
		}
	}
	if _, err := (Keychain{}).Sign(claims); err == nil {
		t.Error("an empty keychain signed")
	}
}

func TestActivate_MovesTheKeyToTheFrontAndSetsTheTimes(t *testing.T) {
	before := chain(t, "a", "b", "c")
	noon := monday.AddDate(0, 0, 9)
	c, err := before.Activate("c", noon)
	if err != nil || !slices.Equal(ids(c), []string{"c", "a", "b"}) {
		t.Fatalf("keys %v, %v", ids(c), err)
	}
	if !c[0].Activated.Equal(noon) || !c[1].Deactivated.Equal(noon) || !c[1].Activated.Equal(monday) || !c[2].Deactivated.IsZero() {
		t.Errorf("times of the keychain %+v", c)
	}
	if !slices.Equal(ids(before), []string{"a", "b", "c"}) || !before[0].Deactivated.IsZero() {
		t.Error("Activate changed its receiver")
	}
	back, err := c.Activate("a", noon.Add(time.Hour))
	if err != nil || !slices.Equal(ids(back), []string{"a", "c", "b"}) || !back[0].Deactivated.IsZero() ||
		!back[1].Deactivated.Equal(noon.Add(time.Hour)) {
		t.Errorf("activated back: %v, %v", ids(back), err)
	}
	if same, err := c.Activate("c", noon.Add(time.Hour)); err != nil || !same[0].Activated.Equal(noon) {
		t.Errorf("activated twice: %v, %v; want the first time", same[0].Activated, err)
	}
}

func TestRetire_NeedsTheKeysCommandsToBeOver(t *testing.T) {
	rotated, err := chain(t, "a", "b", "c").Activate("b", monday)
	require.NoError(t, err)
	plain := chain(t, "a", "b")
	plain[0].Created, plain[0].Activated, plain[1].Created = time.Time{}, time.Time{}, time.Time{}
	byHand := chain(t, "a", "b")
	slices.Reverse(byHand)
	half, again := slices.Clone(rotated), slices.Clone(rotated)
	half[1].Activated = time.Time{}
	again[1].Activated = monday.Add(time.Hour)
	for name, test := range map[string]struct {
		chain  Keychain
		id     string
		after  time.Duration
		refuse string
	}{
		"the active key":                     {rotated, "b", time.Hour, `"b" is active`},
		"an unknown key":                     {rotated, "x", time.Hour, `no key "x"; the file has b (active), a (standby), c (standby)`},
		"immediately after its deactivation": {rotated, "a", 0, "may be retired in 60 s, from 2026-01-05T09:01:00Z on"},
		"a millisecond early":                {rotated, "a", RetireAfter - time.Millisecond, "signed until 2026-01-05T09:00:00Z"},
		"once it may be retired":             {rotated, "a", RetireAfter, ""},
		"with a clock that was set back":     {rotated, "a", -time.Hour, "signed until"},
		"a key that never signed":            {rotated, "c", 0, ""},
		"a key without times":                {plain, "b", time.Hour, "may have signed"},
		"a key moved by hand":                {byHand, "a", time.Hour, "may have signed"},
		"a key without its first time":       {half, "a", 0, "signed until"},
		"a key activated since":              {again, "a", 2 * time.Hour, "may have signed"},
		"the only key":                       {chain(t, "a"), "a", time.Hour, "is active"},
		"the active key without times":       {plain, "a", time.Hour, "is active"},
	} {
		t.Run(name, func(t *testing.T) {
			left, err := test.chain.Retire(test.id, monday.Add(test.after))
			if test.refuse == "" {
				if err != nil || len(left) != len(test.chain)-1 || slices.Contains(ids(left), test.id) {
					t.Errorf("keys %v, %v; want %q removed", ids(left), err, test.id)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.refuse) {
				t.Errorf("keys %v, %v; want the error %q", ids(left), err, test.refuse)
			}
			forced, err := test.chain.Remove(test.id)
			if able := slices.Contains(ids(test.chain)[1:], test.id); able != (err == nil) {
				t.Errorf("retired by force: %v, %v", ids(forced), err)
			}
		})
	}
}

func TestAdd_RepeatedIDIsRefused(t *testing.T) {
	c := chain(t, "a")
	if c, err := c.Add(c[0].Key, monday); err == nil {
		t.Errorf("keys %v, want the second one with the same ID refused", ids(c))
	}
}

// sameKeys compares the content of keychains, not their encoding.
func sameKeys(a, b Keychain) bool {
	plain := func(c Keychain) Keychain {
		c = slices.Clone(c)
		for i := range c {
			c[i].origin = nil
		}
		return c
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

func TestParseKeychain_ReadsWhatEncodeWrites(t *testing.T) {
	c, err := chain(t, "a", "b", "c").Activate("b", monday.Add(1234567*time.Microsecond))
	require.NoError(t, err)
	for range 2 {
		text, err := c.Encode()
		require.NoError(t, err)
		again, err := ParseKeychain(text)
		if err != nil || !sameKeys(again, c) {
			t.Fatalf("read as %v, %v from\n%s", again, err, text)
		}
		// Members of an earlier state must be removed.
		if c, err = again.Activate("a", monday.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestParseKeychain_PlainJWKSHasNoTimes(t *testing.T) {
	keys, _ := goldenKeys(t)
	plain, err := encodeKeys(keys...)
	require.NoError(t, err)
	c, err := ParseKeychain(plain)
	if err != nil || len(c) != len(keys) || c.Active().ID != keys[0].ID || !c[0].Activated.IsZero() {
		t.Fatalf("keychain %v, %v; want the keys without times", c, err)
	}
	text, err := c.Encode()
	if err != nil || !bytes.Equal(text, plain) {
		t.Errorf("encoded again:\n%s\nwant\n%s\n%v", text, plain, err)
	}
}

func TestParseKeychain_KeepsOtherMembers(t *testing.T) {
	c := chain(t, "a", "b")
	text, err := c.Encode()
	require.NoError(t, err)
	foreign := bytes.ReplaceAll(text, []byte(`"kid": "a"`), []byte(`"kid": "a", "x5t": "AAAA", "note": {"by": "vault"}`))
	c, err = ParseKeychain(foreign)
	if err == nil {
		c, err = c.Activate("b", monday)
	}
	require.NoError(t, err)
	if text, err = c.Encode(); err != nil {
		t.Fatal(err)
	}
	var set struct {
		Keys []struct {
			KID  string `json:"kid"`
			X5T  string `json:"x5t"`
			Note map[string]string
		} `json:"keys"`
	}
	if err := json.Unmarshal(text, &set); err != nil || set.Keys[1].KID != "a" || set.Keys[1].X5T != "AAAA" ||
		set.Keys[1].Note["by"] != "vault" {
		t.Errorf("key set %+v, %v; want the other members kept", set, err)
	}
}

func TestParseKeychain_InvalidTimeIsNamed(t *testing.T) {
	text, err := chain(t, "a").Encode()
	require.NoError(t, err)
	for _, bad := range []string{`"yesterday"`, `17`, `null`, `{}`, `""`} {
		broken := bytes.Replace(text, []byte(`"2026-01-05T09:00:00Z"`), []byte(bad), 1)
		if c, err := ParseKeychain(broken); err == nil || !strings.Contains(err.Error(), `"a"`) ||
			!strings.Contains(err.Error(), "motorpool_") {
			t.Errorf("%s: %v, %v; want an error with the key and the member", bad, c, err)
		}
	}
}

func TestKeychain_PrintsNoPrivateKey(t *testing.T) {
	c := chain(t, "a", "b")
	text, err := c.Encode()
	require.NoError(t, err)
	if c, err = ParseKeychain(text); err != nil {
		t.Fatal(err)
	}
	var set struct{ Keys []struct{ D string } }
	require.NoError(t, json.Unmarshal(text, &set))
	encoded, err := json.Marshal(c)
	require.NoError(t, err)
	printed := fmt.Sprintf("%v %+v %#v %s %x %s", c, c, c, c[0], c, encoded)
	for _, secret := range []string{
		set.Keys[0].D, fmt.Sprintf("%x", c[0].Private.Seed()), strings.Trim(fmt.Sprintf("%d", c[0].Private.Seed()), "[]"),
	} {
		if secret == "" || strings.Contains(printed, secret) {
			t.Errorf("the private key was printed: %s", printed)
		}
	}
}

func FuzzParseKeychain(f *testing.F) {
	f.Add(
		[]byte(
			`{"keys":[{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",` +
				`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","motorpool_created":"2026-01-05T09:00:00Z","note":[1]}]}`,
		),
	)
	f.Add(
		[]byte(
			`{"kty":"OKP","crv":"Ed25519","kid":"k","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",` +
				`"d":"nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A","motorpool_activated":"2026-01-05T09:00:00.5+02:00"}`,
		),
	)
	f.Add([]byte(`{"keys":[]}`))
	f.Fuzz(func(t *testing.T, jwks []byte) {
		c, err := ParseKeychain(jwks)
		if err != nil {
			return
		}
		text, err := c.Encode()
		require.NoError(t, err, "%q was parsed, but cannot be encoded", jwks)
		again, err := ParseKeychain(text)
		if err != nil || !slices.Equal(ids(again), ids(c)) {
			t.Errorf("%s is parsed as %v, %v; want %v", text, again, err, c)
		}
		for i := range again {
			if !again[i].Private.Equal(c[i].Private) || !again[i].Created.Equal(c[i].Created) || !again[i].Activated.Equal(c[i].Activated) {
				t.Errorf("%s: key %d differs after encoding", text, i)
			}
		}
	})
}
