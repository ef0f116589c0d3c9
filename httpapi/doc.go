// Package httpapi serves the public API. openapi.yaml is its contract, served at /openapi.yaml and
// browsable at /docs.
//
// # Steps of a request
//
//	request id ─► access log ─► recover ─► route ─┬─► 404, 405
//	                                              ▼
//	body (413) ─► token (401) ─► role (403) ─► agency signature (401, 403) ─► limits (429) ─►
//	contract (415, 400, 422) ─► handler ─► envelope
//
// routes.go has all routes. Package request is below the handlers: its gate.go has the order of the
// checks, its errors.go the answer to each error. The handlers of each resource are in the file of
// its name, and its JSON is in the file of the same name in package resource.
//
// # Audit log
//
// The broker writes the entry of a command [LAW-9]. This package writes the entries of requests
// that it refuses before they reach the broker; and, before the answer, those of reads of reported
// state (a status, a list, commands) and of event streams.
//
// # Concurrency
//
// Handlers are safe for concurrent use and start no goroutine. A caller that disconnects does not
// cancel its command.
package httpapi
