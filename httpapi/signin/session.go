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
	"net/http"
	"time"
)

// session is the stored session of a person who has signed in.
type session struct {
	Access  string    `json:"access"`
	Refresh string    `json:"refresh,omitempty"` // empty: it ends with its access token
	ID      string    `json:"id,omitempty"`      // the ID token: the issuer's sign-out wants it
	Until   time.Time `json:"until"`             // when the access token ends
	End     time.Time `json:"end"`               // when the session ends, whatever its tokens
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

func (s secret) open(sealed []byte) (session, error) {
	var opened session
	plain, err := s.aead().Open(nil, nil, sealed, nil)
	if err != nil {
		return opened, errNotOurs
	}
	if err := json.Unmarshal(plain, &opened); err != nil {
		return opened, fmt.Errorf("read session: %w", err)
	}
	return opened, nil
}

func (s secret) seal(open session) ([]byte, error) {
	plain, err := json.Marshal(open)
	if err != nil {
		return nil, fmt.Errorf("write session: %w", err)
	}
	return s.aead().Seal(nil, nil, plain, nil), nil
}

// load returns the session of a cookie, or false if there is none or it has ended.
func (s *SignIn) load(ctx context.Context, by secret) (session, bool, error) {
	sealed, err := s.Store.Get(ctx, by.storeKey())
	if err != nil || sealed == nil {
		return session{}, false, err
	}
	opened, err := by.open(sealed)
	if err != nil {
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
	return s.Store.Put(ctx, key, sealed, max(open.End.Sub(s.Now()), time.Second))
}

// begin starts a session, and returns the secret for its cookie.
func (s *SignIn) begin(ctx context.Context, open session) (secret, error) {
	by := newSecret()
	open.End = s.Now().Add(s.Lifetime)
	return by, s.keep(ctx, by.storeKey(), by, open)
}

// renew returns the session with a valid access token. Of all concurrent requests, at all
// instances, only one calls the issuer, because a refresh token can be used once. It returns false
// if the issuer has ended the session.
func (s *SignIn) renew(ctx context.Context, by secret, old session) (session, bool, error) {
	still := s.Now().Before(old.Until)
	lock := by.storeKey() + ":renew"
	mine, err := s.Store.PutNew(ctx, lock, []byte{1}, renewFor)
	switch {
	case err != nil && still:
		return old, true, nil
	case err != nil:
		return old, false, err
	case !mine && still:
		return old, true, nil // another one renews it; the next request has the result
	case !mine:
		return s.awaitRenewed(ctx, by, old)
	}
	defer func() {
		if err := s.Store.Delete(context.WithoutCancel(ctx), lock); err != nil {
			s.Log.DebugContext(ctx, "lock of session not removed; it ends by itself", "err", err)
		}
	}()
	// The request that held the lock before may have renewed it since it was read.
	if now, ok, err := s.load(ctx, by); err != nil || !ok || now.Until.After(old.Until) {
		return now, ok, err
	}
	renewed, err := s.issuer.renew(ctx, old)
	if errors.Is(err, errSessionEnded) {
		s.Log.InfoContext(ctx, "session ended by the issuer", "err", err)
		return old, false, s.Store.Delete(ctx, by.storeKey())
	}
	if err != nil {
		s.Log.WarnContext(ctx, "session not renewed", "err", err)
		if still {
			return old, true, nil
		}
		return old, false, err
	}
	if renewed.Until.IsZero() { // the issuer did not say
		id, err := s.Tokens.Authenticate(ctx, http.Header{"Authorization": {"Bearer " + renewed.Access}})
		if err != nil {
			return renewed, false, err
		}
		renewed.Until = id.Until
	}
	// The old refresh token may be used up: a caller that hangs up now must not lose the new one.
	return renewed, true, s.keep(context.WithoutCancel(ctx), by.storeKey(), by, renewed)
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
		select {
		case <-ctx.Done():
			return now, false, unavailableError("renew session: the issuer of access tokens takes too long")
		case <-time.After(renewPoll):
		}
	}
}
