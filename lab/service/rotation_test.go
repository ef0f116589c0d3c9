package service_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"motorpool/internal/keyfile"
	"motorpool/telematics"
	"motorpool/telematics/signing"
)

// signingKey returns the id of the key with which the instance signs.
func (i *instance) signingKey() string {
	i.Helper()
	return i.metrics().Label("motorpool_signing_key_info", "key")
}

// unitKeys returns the keys that the instance publishes for units.
func (i *instance) unitKeys() signing.Keyring {
	i.Helper()
	response, err := http.Get(i.internal + "/units.jwks")
	i.must(err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	i.must(err)
	if kind := response.Header.Get("Content-Type"); response.StatusCode != http.StatusOK || kind != "application/jwk-set+json" {
		i.Fatalf("units.jwks: %s, %s", response.Status, kind)
	}
	var set struct{ Keys []map[string]any }
	i.must(json.Unmarshal(text, &set))
	for _, key := range set.Keys {
		if _, private := key["d"]; private {
			i.Fatalf("the private key %v is published", key["kid"])
		}
	}
	ring, err := signing.ParseKeyring(text)
	i.must(err)
	return ring
}

func (s *stack) editKeys(change func(signing.Keychain) (signing.Keychain, error)) {
	s.Helper()
	s.must(keyfile.Edit(s.Context(), filepath.Join(s.dir, "signing.jwks"), change))
}

// Rounds of the fault harness rotate keys under load, and check which key has signed each copy.
func TestKeys_EveryInstanceFollowsTheFile(t *testing.T) {
	t.Parallel()
	s := embeddedStack(t, 1)
	one, two := s.serve(), s.serve()
	fleet := s.drive(nil, healthy)
	everyInstance := func(what string, holds func(*instance) bool) {
		s.Helper()
		s.eventually(10*time.Second, what, func() bool { return holds(one) && holds(two) })
		for _, i := range []*instance{one, two} {
			i.control(1, telematics.Lock).wants(http.StatusOK)
		}
	}
	next, err := signing.NewKey()
	s.must(err)
	s.editKeys(func(c signing.Keychain) (signing.Keychain, error) { return c.Add(next, time.Now()) })
	everyInstance("the new key is published for units", func(i *instance) bool { return len(i.unitKeys()) == 2 })
	fleet.SetKeyring(one.unitKeys())
	everyInstance("the old key signs", func(i *instance) bool { return i.signingKey() == s.signing.ID })
	s.editKeys(func(c signing.Keychain) (signing.Keychain, error) { return c.Activate(next.ID, time.Now()) })
	everyInstance("the new key signs", func(i *instance) bool { return i.signingKey() == next.ID })
	s.editKeys(func(c signing.Keychain) (signing.Keychain, error) { return c.Remove(s.signing.ID) })
	everyInstance("the old key is not published for units any more", func(i *instance) bool { return len(i.unitKeys()) == 1 })
	fleet.SetKeyring(two.unitKeys())
	everyInstance("units have only the new key", func(*instance) bool { return true })
}
