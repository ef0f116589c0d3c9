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
// The broker adds the audit log entry of a command [LAW-9]. What is turned away here,
// before the broker heard of it, every read of what vehicles reported (a status, a list, commands), and every stream of
// events, is written by this package, before the answer.
//
// # Concurrency
//
// Handlers are safe for concurrent use and start no goroutine. A caller that hangs up
// does not cancel its command. Live events are package stream's.
package httpapi
