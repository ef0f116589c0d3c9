package auth

import "time"

const (
	// maxToken bounds a token, in bytes. Half refuses tokens of providers that list many groups;
	// double lets callers without a token have twice as much parsed.
	maxToken = 8 << 10
	// maxVerified bounds the cache of verified tokens. A cached token needs no signature check
	// (some 100 µs). Half empties the cache twice as often where more actors are active; double
	// needs twice the memory, some 5 MB.
	maxVerified = 10_000
	// maxSubject bounds sub, in bytes: it is in each audit log entry. Half refuses subjects that
	// are URLs; double makes entries longer.
	maxSubject = 255
	// maxJWKS is the largest key set that is read from a URL, in bytes. No provider has more than
	// some KB; the bound is for a wrong URL.
	maxJWKS = 1 << 20

	// defaultLeeway is the clock error that exp and nbf allow. Half refuses tokens where clocks
	// differ by a minute; double accepts expired tokens for longer.
	defaultLeeway = time.Minute
	// defaultRefresh is how often keys are read. Half doubles the load of the provider; double
	// keeps removed keys valid for longer.
	defaultRefresh = 5 * time.Minute
	// defaultGap is the least time between readings because of unknown key ids. Half lets forged
	// tokens double the load of the provider; double refuses good tokens for longer after a
	// rotation without overlap.
	defaultGap = 10 * time.Second
	// defaultTimeout is for one reading. Half fails with a slow provider; double holds callers with
	// a new key id longer.
	defaultTimeout = 3 * time.Second
	// minRetry and maxRetry bound the intervals after a failed reading. Half doubles the load of a
	// provider that is down; double delays readiness after its return.
	minRetry = 500 * time.Millisecond
	maxRetry = 10 * time.Second
)
