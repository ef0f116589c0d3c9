package main

import (
	"errors"
	"fmt"
	"net/http"

	"motorpool/store/pg"
	"motorpool/store/unavailable"
)

// Exit codes; docs/cli.md has the same list, and scripts rely on it.
const (
	exitUsage   = 2 // the command line is wrong, or a setting
	exitRefused = 3 // refused, or nothing was sent: nothing has happened
	exitFailed  = 4 // it was tried and failed
	exitUnknown = 5 // it may have happened
	// The service or a server that it needs is unavailable; nothing has happened.
	exitUnavailable = 6
)

// failure is an error with an exit code.
type failure struct {
	code int
	error
}

// Unwrap returns the error itself.
func (f failure) Unwrap() error { return f.error }

func badUsage(format string, args ...any) error {
	return failure{exitUsage, fmt.Errorf(format, args...)}
}
func refused(format string, args ...any) error {
	return failure{exitRefused, fmt.Errorf(format, args...)}
}

// exitCode returns the code of an error; zero for none.
func exitCode(err error) int {
	var f failure
	switch {
	case err == nil:
		return 0
	case errors.As(err, &f):
		return f.code
	case unavailable.Is(err) && !pg.Refuses(err):
		return exitUnavailable
	}
	return exitFailed
}

// exitCode returns the exit code of an unsuccessful answer.
func (e envelope) exitCode(method string, status int) int {
	switch {
	case e.Error.Outcome == "unknown":
		return exitUnknown
	case e.Error.Outcome == "failed":
		return exitFailed
	case e.Error.Code == "validation_failed": // the service checks some values of flags
		return exitUsage
	case e.Error.Code == "service_unavailable", e.Error.Code == "telematics_unavailable", e.Error.Code == "payment_processor_unavailable":
		return exitUnavailable
	case e.Error.Outcome == "not_executed", status < http.StatusInternalServerError:
		return exitRefused
	}
	return foreignExitCode(method, status)
}

// foreignExitCode returns the exit code of an answer that is not the service's, such as a proxy's,
// or that has no known error code and outcome.
func foreignExitCode(method string, status int) int {
	switch {
	case status < http.StatusInternalServerError:
		return exitRefused
	case method == http.MethodGet, status == http.StatusServiceUnavailable:
		return exitUnavailable
	}
	return exitUnknown
}
