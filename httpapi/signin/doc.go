// Package signin signs people in to the console: a backend for its pages, so that a browser never
// holds an access token.
//
//	browser ─ /auth/sign-in ─► issuer ─ /auth/callback ─► session: tokens, sealed, in Store; its key in a cookie
//	browser ─ /auth/sign-in with a password ─► session: an operator's id and epoch, likewise
//	browser ─ API with the cookie ─► Identify ─┬─► the session's access token ─► auth.Tokens, as for every caller
//	                                           └─► Operators: still there, with the same epoch?
//
// The flow is OpenID Connect's authorization code with PKCE, through the installation's issuer; an
// installation without one has Operators. A session ends with sign-out, after its longest lifetime,
// when the issuer refuses to renew its tokens, when the operator is removed or gets another
// password, or when Redis loses it: then people sign in again. All types are safe for concurrent
// use.
package signin

import (
	"context"
	"time"
)

// Store keeps values under keys for some time. It may lose them. Its errors have a method
// Unavailable() bool that returns true.
type Store interface {
	// Put stores a value.
	Put(ctx context.Context, key string, value []byte, keep time.Duration) error
	// PutNew stores a value where there is none under the key. It reports whether the value is now
	// this one, as it is, too, where the driver repeats a command whose reply was lost.
	PutNew(ctx context.Context, key string, value []byte, keep time.Duration) (bool, error)
	// Get returns a value, or nil.
	Get(ctx context.Context, key string) ([]byte, error)
	// Delete deletes a value, if there is one.
	Delete(ctx context.Context, key string) error
	// Swap replaces a value that is still the old one; a nil value deletes it. It reports whether
	// the value is now the new one, so that a repetition after a lost reply is true as well.
	Swap(ctx context.Context, key string, old, value []byte, keep time.Duration) (bool, error)
}
