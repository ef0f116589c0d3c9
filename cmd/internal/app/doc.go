// Package app assembles the service from its parts: the only place that knows
// everyone. Its settings are in config.go, its wiring is one straight function in
// serve.go.
package app
