package signin

import "time"

const (
	// DefaultLifetime is the longest that a session lasts. Half: people sign in twice in a shift;
	// double: a browser that was left open is signed in the next day.
	DefaultLifetime = 12 * time.Hour

	// Before an access token ends it is renewed. Half: more requests wait for the issuer; double:
	// more of each token's lifetime is not used.
	renewBefore = 30 * time.Second
	// How long one instance may take to renew a session while others wait for it. Half: a slow
	// issuer sees a refresh token twice, and may end the session; double: an instance that died
	// delays the session's requests for longer.
	renewFor = 10 * time.Second
	// Between two checks whether another request has renewed a session.
	renewPoll = 100 * time.Millisecond

	// From the redirect to the issuer until its callback: people look for a password meanwhile.
	attemptFor = 15 * time.Minute
	// Timeout of a request to the issuer.
	issuerTimeout = 8 * time.Second
	// Concurrent requests to the issuer, so that made-up callbacks cannot flood it.
	issuerCalls = 16
	// Until the next attempt after a failed discovery of the issuer.
	discoverAgain = 2 * time.Second
)
