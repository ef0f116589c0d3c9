// Package httpapi serves the public API. openapi.yaml is its contract, served at /openapi.yaml and
// browsable at /docs.
//
// # The way of a request
//
//	number it ─► log it ─► catch panics ─► route ─┬─► 404, 405
//	                                              ▼
//	body (413) ─► token (401) ─► role (403) ─► agency signature (401, 403) ─► limits (429) ─►
//	contract (415, 400, 422) ─► handler ─► envelope
//
// routes.go has all routes, gate.go the order of the checks, errors.go the HTTP status of each
// error. A noun of the API has its handlers in the file of its name, and its JSON in the file of
// the same name in package resource.
//
// # Audit log
//
// The broker writes the entry of a command [LAW-9]. This package writes those of requests that it
// refuses before the broker sees them, of reads of what vehicles reported (a status, a list,
// commands), and of event streams; before the answer.
//
// # Concurrency
//
// Handlers are safe for concurrent use and start no goroutine. A caller that hangs up does not
// cancel its command.
package httpapi
