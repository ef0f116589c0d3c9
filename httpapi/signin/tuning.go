package signin

import (
	"time"

	"motorpool/telematics"
)

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

	// hashPlaces is how many passwords are hashed concurrently, and as many of browsers in which
	// the person has signed in before: 19 MiB and a processor each. Half: a flood delays sign-ins
	// twice as much; double: it takes the processors from commands.
	hashPlaces = 2
	// How long a sign-in waits for its place. Half: people are refused at the beginning of a shift;
	// double: a flood keeps twice as many requests.
	hashWait = 4 * time.Second
	// How long a browser is remembered in which a person has signed in, and for how many people.
	// Half: after holidays, who guesses passwords can lock people out.
	browserFor   = 180 * 24 * time.Hour
	browserNames = 16
)

// Attempts with a password. Half refuses people of one office at the beginning of a shift, and who
// has forgotten a password; double lets who guesses try twice as many.
var (
	addressRate = telematics.Rate{Limit: 30, Per: 10 * time.Minute}
	nameRate    = telematics.Rate{Limit: 10, Per: 15 * time.Minute} // in a known browser, too
)
