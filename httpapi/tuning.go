package httpapi

import (
	"time"

	"motorpool/rental/areas"
)

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
	// maxNotice bounds the body of a payment processor's notice, in bytes; theirs have up to 64
	// KiB. Half refuses none of today.
	maxNotice = 256 << 10
	// maxNoticeText bounds the id, the type and the object of a notice, in bytes; the processor's
	// have fewer than 100.
	maxNoticeText = 255
	// areaBody bounds the body of a request with an area, in bytes: the area, and what is around
	// it. Half refuses areas; double needs twice the memory in a flood.
	areaBody = areas.MaxBytes + 8<<10
	// farArea is how far from all stations an area is suspected to be in the wrong place, in
	// metres: further than people drive a shared car. Half warns of large areas; double misses
	// some whose positions begin with the latitude.
	farArea = 500_000
)

// Times that callers get.
const (
	// readBudget is the default of Config.ReadBudget. Half fails reads while Postgres fails over;
	// double holds callers of a frozen server.
	readBudget = 5 * time.Second
	// openBudget is for beginning the start or end of a rental, whose vehicle may have to report
	// first. Half has reports of a slow network miss the return check; double delays a refusal.
	openBudget = 12 * time.Second
	// transitionSlack is what a transition may take besides its command: the payment. Half answers
	// more often with 202; double has apps wait for a processor that is slow.
	transitionSlack = 3 * time.Second
	// cancelWait is for the payments of a start that is given up. Half answers with 202 more often;
	// double has apps wait for a processor that is slow.
	cancelWait = 5 * time.Second
	// effectBudget is for counting what a halt stops. Half leaves it out more often on a busy
	// database; double delays the answer to a halt that holds already.
	effectBudget = 2 * time.Second
	// preflightAge is how long a browser caches the answer to a preflight, in seconds. Half doubles
	// the preflights; double delays a change of the origins.
	preflightAge = 600
)

// Defaults of what clients look for.
const (
	// defaultAhead is for how long free times are answered. Half: a calendar of a month needs to;
	// double: bookings are read that no calendar shows.
	defaultAhead = 31 * 24 * time.Hour
	// defaultRadius is how many metres around a place vehicles are wanted. Half misses those that
	// people walk to; double has more pages.
	defaultRadius = 2000
)

// Defaults and maxima for the period of a telemetry history, and for the number of its points. A
// chart shows a few hundred points; 1,000 of all fields are 150 KB.
const (
	defaultHistory = 24 * time.Hour
	maxHistory     = 31 * 24 * time.Hour
	defaultPoints  = 300
	maxPoints      = 1000
)
