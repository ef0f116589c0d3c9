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
	// Concurrent requests to the issuer because of sign-ins, so that made-up callbacks cannot flood
	// it, and as many because of renewals. Half: people wait at the beginning of a shift; double: a
	// flood costs the issuer twice as much.
	issuerCalls = 16
	// The part of the places for sign-ins that one address can take: half of them, since all people
	// have one address where --trusted-proxies does not name the proxy. Half: a slow issuer lets
	// four of an office sign in at a time; double: one address locks out all others.
	addressCalls = issuerCalls / 2
	// How long attempts are sealed with one key. Those that are open when it ends begin again.
	attemptKeyFor = 365 * 24 * time.Hour
	// Until the next attempt after a failed discovery of the issuer.
	discoverAgain = 2 * time.Second
)
