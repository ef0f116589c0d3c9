package signing

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v3/jwk"

	"motorpool/telematics"
)

// Keychain is the fleet's private keys. The first one is active: it signs every
// command. The others are on standby: units may know them, and none of them signs.
//
// Keys are rotated in an order in which every unit knows the active key, and every
// key whose commands are still in flight, at every moment:
//
//	Add → units learn it → Activate → RetireAfter → Retire → units forget the old one
//
// A keychain is never changed in place: each step returns a new one.
type Keychain []FleetKey

// FleetKey is a key of the keychain, and when its state changed, as far as that is known.
type FleetKey struct {
	Key
	Created   time.Time // zero: not known
	Activated time.Time // when it last became the active key. Zero: never, or not known
	// When another key last replaced it as active. Zero: not since, or not known.
	Deactivated time.Time

	origin jwk.Key // as it was read, with members of other programs; nil: new
}

// RetireAfter is how long a key that signed is kept: its last command lives for 35 s
// at most [CMD-4], and clocks differ.
const RetireAfter = 60 * time.Second

// Members of a key in the file, in addition to those of RFC 7517. Times are RFC 3339.
const (
	createdMember     = "motorpool_created"
	activatedMember   = "motorpool_activated"
	deactivatedMember = "motorpool_deactivated"
)

// ParseKeychain reads private keys from a JWKS (RFC 7517, OKP Ed25519), with their
// times if it has them. A set without keys is an error.
func ParseKeychain(jwks []byte) (Keychain, error) {
	set, err := jwk.Parse(jwks)
	if err != nil {
		return nil, fmt.Errorf("parse signing keys: %w", err)
	}
	var chain Keychain
	for i := range set.Len() {
		source, _ := set.Key(i)
		key, err := parseFleetKey(source)
		if err != nil {
			return nil, fmt.Errorf("parse signing keys: key %d (%q): %w", i, key.ID, err)
		}
		if chain.index(key.ID) >= 0 {
			return nil, fmt.Errorf("parse signing keys: two keys are called %q", key.ID)
		}
		chain = append(chain, key)
	}
	if len(chain) == 0 {
		return nil, errors.New("parse signing keys: the set is empty")
	}
	return chain, nil
}

func parseFleetKey(source jwk.Key) (FleetKey, error) {
	key := FleetKey{origin: source}
	key.ID, _ = source.KeyID()
	if err := jwk.Export(source, &key.Private); err != nil || key.ID == "" {
		return key, errors.New("want a private Ed25519 key with a kid")
	}
	for member, at := range key.times() {
		var text string
		if !source.Has(member) {
			continue
		}
		err := source.Get(member, &text)
		if err == nil {
			*at, err = time.Parse(time.RFC3339, text)
		}
		if err != nil {
			return key, fmt.Errorf("%s: want a time such as 2026-01-02T10:00:00Z", member)
		}
	}
	return key, nil
}

// times returns a pointer to the field of each member.
func (k *FleetKey) times() map[string]*time.Time {
	return map[string]*time.Time{createdMember: &k.Created, activatedMember: &k.Activated, deactivatedMember: &k.Deactivated}
}

// Encode returns the JWKS that ParseKeychain reads. It contains the private keys, and
// members that other programs have added to a key.
func (c Keychain) Encode() ([]byte, error) {
	set := jwk.NewSet()
	for _, k := range c {
		key, err := k.encode()
		if err == nil {
			err = set.AddKey(key)
		}
		if err != nil {
			return nil, fmt.Errorf("encode key %q: %w", k.ID, err)
		}
	}
	return json.MarshalIndent(set, "", "  ")
}

func (k FleetKey) encode() (jwk.Key, error) {
	var key jwk.Key
	var err error
	if k.origin != nil {
		key, err = k.origin.Clone()
	} else {
		key, err = newJWK(k.ID, k.Private)
	}
	if err != nil {
		return nil, err
	}
	for member, at := range k.times() {
		if at.IsZero() {
			err = key.Remove(member)
		} else {
			err = key.Set(member, at.UTC().Format(time.RFC3339Nano))
		}
		if err != nil {
			return nil, err
		}
	}
	return key, nil
}

// Active returns the key that signs. The keychain must not be empty.
func (c Keychain) Active() FleetKey { return c[0] }

// Sign signs with the active key. It fails for an empty keychain.
func (c Keychain) Sign(claims telematics.Claims) ([]byte, error) {
	if len(c) == 0 {
		return nil, errors.New("sign command: there is no key to sign with")
	}
	return c.Active().Sign(claims)
}

// Keyring returns the public keys of all keys, which units must know.
func (c Keychain) Keyring() Keyring {
	ring := Keyring{}
	for _, k := range c {
		for id, public := range k.Keyring() {
			ring[id] = public
		}
	}
	return ring
}

// Add puts a new key on standby. The first key of a keychain is active immediately.
func (c Keychain) Add(key Key, now time.Time) (Keychain, error) {
	if c.index(key.ID) >= 0 {
		return nil, fmt.Errorf("there is a key %q already", key.ID)
	}
	added := FleetKey{Key: key, Created: truncateToMillis(now)}
	if len(c) == 0 {
		added.Activated = added.Created
	}
	return append(slices.Clone(c), added), nil
}

// Activate makes a key the active one. Units must know it before that, or they reject
// its commands.
func (c Keychain) Activate(id string, now time.Time) (Keychain, error) {
	i, err := c.find(id)
	if err != nil || i == 0 {
		return c, err
	}
	next := slices.Clone(c)
	next[0].Deactivated = truncateToMillis(now)
	activated := next[i]
	activated.Activated, activated.Deactivated = truncateToMillis(now), time.Time{}
	return slices.Insert(slices.Delete(next, i, i+1), 0, activated), nil
}

// Retire removes a key on standby. It refuses the active key, and one whose commands
// may still be in flight.
func (c Keychain) Retire(id string, now time.Time) (Keychain, error) {
	next, err := c.Remove(id)
	if err != nil {
		return nil, err
	}
	i := c.index(id)
	if err := c[i].idle(now); err != nil {
		return nil, fmt.Errorf("key %q %w", id, err)
	}
	return next, nil
}

// Remove removes a key on standby, even if commands that it signed are in flight: units
// may then reject those that they have not begun.
func (c Keychain) Remove(id string) (Keychain, error) {
	i, err := c.find(id)
	if err != nil {
		return nil, err
	}
	if i == 0 {
		return nil, fmt.Errorf("key %q is active: it signs every command; activate another one first", id)
	}
	return slices.Delete(slices.Clone(c), i, i+1), nil
}

// idle returns why the key may have signed within RetireAfter; nil: it has not.
func (k FleetKey) idle(now time.Time) error {
	switch {
	case k.Activated.IsZero() && k.Deactivated.IsZero() && !k.Created.IsZero():
		return nil // it never signed
	case k.Deactivated.IsZero() || k.Deactivated.Before(k.Activated):
		// A plain JWKS, or keys reordered by hand.
		return errors.New("may have signed a moment ago: the file does not say when it stopped")
	}
	if free := k.Deactivated.Add(RetireAfter); now.Before(free) {
		return fmt.Errorf("signed until %s: its last commands may still be in flight; it may be retired in %.0f s, from %s on",
			k.Deactivated.Format(time.RFC3339), math.Ceil(free.Sub(now).Seconds()), free.Format(time.RFC3339))
	}
	return nil
}

func (c Keychain) index(id string) int {
	return slices.IndexFunc(c, func(k FleetKey) bool { return k.ID == id })
}

func (c Keychain) find(id string) (int, error) {
	if i := c.index(id); i >= 0 {
		return i, nil
	}
	var known []string
	for i, k := range c {
		known = append(known, fmt.Sprintf("%s (%s)", k.ID, c.State(i)))
	}
	return -1, fmt.Errorf("there is no key %q; the file has %s", id, strings.Join(known, ", "))
}

// State returns the state of the i-th key: active or standby.
func (c Keychain) State(i int) string {
	if i == 0 {
		return "active"
	}
	return "standby"
}

// truncateToMillis returns a time in UTC with the precision of the file.
func truncateToMillis(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
