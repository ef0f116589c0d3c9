// Package httpapi is the HTTP face of Motorpool: what an administrator's tool says
// to the fleet, and what it hears back. openapi.yaml is its contract, served at
// /openapi.yaml and browsable at /docs.
//
// # The way of a request
//
//	number it ─► log it ─► catch panics ─► route ─┬─► 404, 405
//	                                              ▼
//	body (413) ─► token (401) ─► role (403) ─► agency signature (401, 403) ─► rate (429) ─► contract (415, 400, 422) ─► handler ─► envelope
//
// routes.go is the whole surface on one screen, gate.go the order of the checks, errors.go the
// only place that knows which error is which HTTP status.
//
// # What is written down
//
// A command's line of the history is the broker's [LAW-9]. What is turned away here,
// before the broker heard of it, every read of what vehicles reported (a status, a list, commands), and every stream of
// events, is written by this package, before the answer.
//
// # Events
//
//	log ─► Feed ─► chunks at hand (ring) ─► reader ─► stream
//	 └──────────────► pages ────────────────┘  until its place is at hand
//
// The feed follows the log once and encodes each event once. A reader goes through what is at
// hand in its own time; one that comes back begins in the log.
//
// # Concurrency
//
// Handlers are safe for concurrent use and start no goroutine. Keys.Run and Feed.Run are
// the loops; their caller owns them. A stream is its handler, until it ends. A caller that hangs up does not cancel its command. Of very
// many orders at once, those that wait for their vehicles do so in the server's waiting room.
package httpapi
