package httpapi

import "time"

// Limits of a request and its connection. Source: a request of the longest path and body passes a
// mobile network of 50 kbit/s.
const (
	// headerBudget is for the header of a request. Half cuts callers with a bad mobile connection;
	// double holds connections of slow attackers longer.
	headerBudget = 5 * time.Second
	// bodyBudget is for the body. Half cuts uploads of 64 KiB at 50 kbit/s; double as above.
	bodyBudget = 15 * time.Second
	// answerSlack is what a call may need besides its command's budget. Half cuts answers while
	// Postgres fails over; double delays the end of a process that stops.
	answerSlack = 10 * time.Second
	// idleBudget is how long a connection may be idle between requests. Half has apps dial more
	// often; double keeps twice as many idle connections. Load balancers must reuse connections for
	// a shorter time.
	idleBudget = 2 * time.Minute
	// maxHeader bounds the header, in bytes. Half refuses tokens of 8 KiB with many cookies; double
	// costs memory for each slow caller.
	maxHeader = 32 << 10
	// maxBody bounds the body, in bytes. Half refuses no request of today (1,000 vehicles need 20
	// KiB); double doubles the memory of a flood.
	maxBody = 64 << 10
	// maxNotice bounds the body of a payment processor's notice, in bytes; theirs have up to 64
	// KiB. Half refuses none of today.
	maxNotice = 256 << 10
	// maxNoticeText bounds the id, the type and the object of a notice, in bytes; the processor's
	// have fewer than 100.
	maxNoticeText = 255
)

// Times that callers get.
const (
	// readBudget is the default of Config.ReadBudget. Half fails reads while Postgres fails over;
	// double holds callers of a frozen server.
	readBudget = 5 * time.Second
	// effectBudget is for counting what a halt stops. Half leaves it out more often on a busy
	// database; double delays the answer to a halt that holds already.
	effectBudget = 2 * time.Second
	// retryUnavailable is when a caller repeats a request while a server is unavailable; failover
	// takes some 10 s. Half doubles the load of a recovering server; double delays callers.
	retryUnavailable = 10 * time.Second
	// retrySignature is when fewer of a client's signatures are fresh: a tenth of ten minutes.
	// Half brings callers back too early.
	retrySignature = time.Minute
	// preflightAge is how long a browser caches the answer to a preflight, in seconds. Half doubles
	// the preflights; double delays a change of the origins.
	preflightAge = 600
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

// Defaults and maxima for the period of a telemetry history, and for the number of its points. A
// chart shows a few hundred points; 1,000 of all fields are 150 KB.
const (
	defaultHistory = 24 * time.Hour
	maxHistory     = 31 * 24 * time.Hour
	defaultPoints  = 300
	maxPoints      = 1000
)
