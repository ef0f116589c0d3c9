package request

import "time"

// Bounds of a request, and the times after which a caller repeats it.
const (
	// maxBody bounds the body, in bytes. Half refuses no request of today (1,000 vehicles need 20
	// KiB); double doubles the memory of a flood.
	maxBody = 64 << 10
	// RetryUnavailable is when a caller repeats a request while a server is unavailable; failover
	// takes some 10 s. Half doubles the load of a recovering server; double delays callers.
	RetryUnavailable = 10 * time.Second
	// retrySignature is when fewer of a client's signatures are fresh: a tenth of ten minutes.
	// Half brings callers back too early.
	retrySignature = time.Minute
)

// Bounds of what one actor can cause.
const (
	// defaultLimit and maxLimit are the entries of a page; the contract says the same.
	defaultLimit = 50
	maxLimit     = 200
	// urgentRate is how many urgent changes a minute an actor may make at an instance; each adds an
	// audit log entry, which cannot be deleted. Operators need some ten: half is enough, double
	// lets the log grow faster under attack.
	urgentRate = 600
	// vehiclesPerRequest is how many vehicles in the map of a fleet count as one of the requests
	// that an actor may make, at an instance. A read of 100,000 takes a second of a processor in
	// Postgres and here together, so 600 requests a minute become 6 reads. Half: people of large
	// fleets wait when they load the page again; double: one of them takes a fifth of a processor.
	vehiclesPerRequest = 1000
	// maxBoundActors bounds the actors whose refusals are counted. Half forgets counts in a flood
	// of 5,000 actors; double needs twice the memory, some 2 MB.
	maxBoundActors = 10_000
)
