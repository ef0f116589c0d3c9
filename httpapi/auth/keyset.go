package auth

import (
	"errors"
	"fmt"

	"github.com/lestrrat-go/jwx/v3/jwa"
	"github.com/lestrrat-go/jwx/v3/jwk"
)

// keySet is one reading of the source.
type keySet struct {
	text []byte
	keys []verificationKey
}

type verificationKey struct {
	id     string // empty: none
	alg    jwa.SignatureAlgorithm
	public any
}

// newKeySet returns the public keys in a JWKS that can verify a token. Others, such as
// symmetric ones, are left out: the bearer of a token might know them.
func newKeySet(text []byte) (*keySet, error) {
	// A key that cannot be parsed must not invalidate the others.
	source, err := jwk.Parse(text, jwk.WithIgnoreParseError(true))
	if err != nil {
		return nil, fmt.Errorf("parse key set: %w", err)
	}
	set := &keySet{text: text}
	for i := range source.Len() {
		key, _ := source.Key(i)
		if alg, ok := signs(key); ok {
			public, err := publicHalf(key)
			if err != nil {
				continue
			}
			id, _ := key.KeyID()
			set.keys = append(set.keys, verificationKey{id: id, alg: alg, public: public})
		}
	}
	if len(set.keys) == 0 {
		return nil, errors.New("the key set holds no key for RS256, ES256 or EdDSA")
	}
	return set, nil
}

// signs returns the algorithm of the key, or false if it signs no tokens. The key decides, never
// the token.
func signs(key jwk.Key) (jwa.SignatureAlgorithm, bool) {
	var alg jwa.SignatureAlgorithm
	var curve jwa.EllipticCurveAlgorithm
	_ = key.Get(jwk.ECDSACrvKey, &curve) // an RSA key has no curve
	switch {
	case key.KeyType() == jwa.RSA():
		alg = jwa.RS256()
	case key.KeyType() == jwa.EC() && curve == jwa.P256():
		alg = jwa.ES256()
	case key.KeyType() == jwa.OKP() && curve == jwa.Ed25519():
		alg = jwa.EdDSA()
	default:
		return alg, false
	}
	use, hasUse := key.KeyUsage()
	said, hasAlg := key.Algorithm()
	return alg, (!hasUse || use == "sig") && (!hasAlg || said.String() == alg.String())
}

func publicHalf(key jwk.Key) (any, error) {
	public, err := jwk.PublicKeyOf(key)
	if err != nil {
		return nil, err
	}
	var raw any
	err = jwk.Export(public, &raw)
	return raw, err
}

// find returns the key with an id for an algorithm. A token without an id is accepted if
// there is exactly one key for its algorithm.
func (s *keySet) find(id string, alg jwa.SignatureAlgorithm) (any, bool) {
	var found []any
	for _, key := range s.keys {
		if key.alg == alg && (id == "" || key.id == id) {
			found = append(found, key.public)
		}
	}
	if len(found) != 1 {
		return nil, false
	}
	return found[0], true
}
