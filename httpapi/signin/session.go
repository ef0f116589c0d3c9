package signin

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"motorpool/guard"
	"motorpool/httpapi/auth"
)

// session is the stored session of a person who has signed in.
type session struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"` // empty: it ends with its access token
	ID      string    `json:"id,omitempty"`      // the ID token: the issuer's sign-out wants it
	Until   time.Time `json:"until"`             // when the access token ends
	End     time.Time `json:"end"`               // when the session ends, whatever its tokens

	// Of a person who has signed in with a password, instead of the tokens.
	Operator int64 `json:"operator,omitempty"`
	Epoch    int64 `json:"epoch,omitempty"`

	sealed []byte // as it was read: what replaces it names it
}

// holder is whom a token is of. It is read without verification, so it is only good for tokens that
// were verified, or that came from the issuer itself.
type holder struct {
	Subject string  `json:"sub"`
	Object  string  `json:"oid"` // of Entra ID, whose subjects differ by application
	Expires float64 `json:"exp"`
}

func holderOf(token string) (h holder) {
	if parts := strings.Split(token, "."); len(parts) == 3 {
		text, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err != nil || json.Unmarshal(text, &h) != nil {
			return holder{}
		}
	}
	return h
}

func (h holder) is(other holder) bool {
	return h.Subject == other.Subject || h.Object != "" && h.Object == other.Object
}

// secret is the value of a cookie. The session's key in the store and the key that it is encrypted
// with are derived from it, so the store alone reveals neither.
type secret [32]byte

func newSecret() secret {
	var s secret
	rand.Read(s[:])
	return s
}

// parseSecret returns false for a text that does not have the form of a secret.
func parseSecret(text string) (secret, bool) {
	var s secret
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != len(s) {
		return s, false
	}
	copy(s[:], raw)
	return s, true
}

func (s secret) String() string { return base64.RawURLEncoding.EncodeToString(s[:]) }

// derive returns 32 bytes for a purpose, from which neither the secret nor those for another
// purpose follow.
func (s secret) derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, s[:], nil, "motorpool sign-in: "+purpose, 32)
	if err != nil {
		panic(err) // only for a key longer than 8 KiB
	}
	return key
}

func (s secret) storeKey() string { return base64.RawURLEncoding.EncodeToString(s.derive("name")) }

func (s secret) aead() cipher.AEAD {
	block, err := aes.NewCipher(s.derive("seal"))
	if err != nil {
		panic(err) // only for a key of another length
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic(err) // only for another block size
	}
	return aead
}

var errNotOurs = errors.New("not sealed with this key")

// open reads what seal has written into value.
func (s secret) open(sealed []byte, value any) error {
	plain, err := s.aead().Open(nil, nil, sealed, nil)
	if err != nil {
		return errNotOurs
	}
	if err := json.Unmarshal(plain, value); err != nil {
		return fmt.Errorf("read what was sealed: %w", err)
	}
	return nil
}

func (s secret) seal(value any) ([]byte, error) {
	plain, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return s.aead().Seal(nil, nil, plain, nil), nil
}

// load returns the session of a cookie, or false if there is none or it has ended.
func (s *SignIn) load(ctx context.Context, by secret) (session, bool, error) {
	sealed, err := s.Store.Get(ctx, by.storeKey())
	if err != nil || sealed == nil {
		return session{}, false, err
	}
	opened := session{sealed: sealed}
	if err := by.open(sealed, &opened); err != nil {
		s.Log.WarnContext(ctx, "session not read", "err", err)
		return session{}, false, nil
	}
	return opened, s.Now().Before(opened.End), nil
}

func (s *SignIn) keep(ctx context.Context, key string, by secret, open session) error {
	sealed, err := by.seal(open)
	if err != nil {
		return err
	}
	return s.Store.Put(ctx, key, sealed, s.keepFor(open))
}

// keepFor returns how long a session is kept.
func (s *SignIn) keepFor(open session) time.Duration { return max(open.End.Sub(s.Now()), time.Second) }

// begin starts a session, and returns the secret for its cookie.
func (s *SignIn) begin(ctx context.Context, open session) (secret, error) {
	by := newSecret()
	open.End = s.Now().Add(s.Lifetime)
	return by, s.keep(ctx, by.storeKey(), by, open)
}

// renew returns the session with a valid access token. Of all concurrent requests, at all
// instances, only one calls the issuer, because a refresh token can be used once. It returns false
// if the session has ended.
func (s *SignIn) renew(ctx context.Context, by secret, old session) (session, bool, error) {
	still := s.Now().Before(old.Until)
	// A browser that hangs up stops neither the issuer, which replaces the refresh token, nor us.
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewFor)
	defer cancel()
	lock, mine := by.storeKey()+":renew", newSecret()
	locked, err := s.Store.PutNew(detached, lock, mine[:], renewFor)
	switch {
	case err != nil && still:
		return old, true, nil
	case err != nil:
		return old, false, err
	case !locked && still:
		return old, true, nil // another one renews it; the next request has the result
	case !locked:
		return s.awaitRenewed(ctx, by, old)
	}
	defer func() {
		if _, err := s.Store.Swap(context.WithoutCancel(ctx), lock, mine[:], nil, 0); err != nil {
			s.Log.DebugContext(ctx, "lock of session not removed; it ends by itself", "err", err)
		}
	}()
	// The request that held the lock before may have renewed it since it was read.
	before := old.Until
	old, ok, err := s.load(detached, by)
	if err != nil || !ok || old.Until.After(before) {
		return old, ok, err
	}
	renewed, err := s.issuer.renew(detached, old)
	switch {
	case errors.Is(err, errSessionEnded):
		s.Log.InfoContext(ctx, "session ended by the issuer", "err", err)
		return s.replace(detached, by, old, nil)
	case err != nil:
		if errors.Is(err, errRefused) {
			s.Log.ErrorContext(ctx, "session not renewed: the issuer refuses the service's request", "err", err)
			err = auth.UnavailableError(err.Error())
		} else {
			s.Log.WarnContext(ctx, "session not renewed", "err", err)
		}
		if still {
			return old, true, nil
		}
		return old, false, err
	case renewed.Until.IsZero(): // the issuer did not say
		renewed.Until = s.Now().Add(2 * renewBefore)
		if expires := holderOf(renewed.Access).Expires; expires > 0 {
			renewed.Until = time.Unix(int64(expires), 0)
		}
	}
	return s.replace(detached, by, old, &renewed)
}

// replace stores the session that follows the old one; nil: it has ended. Where the old one is not
// stored any more, because it was signed out or renewed meanwhile, it returns what is stored. The
// old refresh token may be used up, so it tries until the context ends.
func (s *SignIn) replace(ctx context.Context, by secret, old session, renewed *session) (session, bool, error) {
	var sealed []byte
	keep := time.Duration(0)
	if renewed != nil {
		var err error
		if sealed, err = by.seal(*renewed); err != nil {
			return old, false, err
		}
		keep = s.keepFor(*renewed)
	}
	for {
		swapped, err := s.Store.Swap(ctx, by.storeKey(), old.sealed, sealed, keep)
		switch {
		case err == nil && !swapped:
			return s.load(ctx, by)
		case err == nil && renewed == nil:
			return old, false, nil
		case err == nil:
			return *renewed, true, nil
		}
		if !guard.Pause(ctx, renewPoll) {
			return old, false, err
		}
	}
}

// awaitRenewed waits until another request has renewed a session.
func (s *SignIn) awaitRenewed(ctx context.Context, by secret, old session) (session, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, renewFor)
	defer cancel()
	for {
		now, ok, err := s.load(ctx, by)
		if err != nil || !ok || now.Until.After(old.Until) {
			return now, ok, err
		}
		if !guard.Pause(ctx, renewPoll) {
			return now, false, auth.UnavailableError("renew session: the issuer of access tokens takes too long")
		}
	}
}
