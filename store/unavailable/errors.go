// Package unavailable distinguishes errors of servers that cannot be reached, or do not reply in
// time, from defects. It also has the circuit breaker for servers without which the service can
// run for a while.
package unavailable

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/lib/pq"
	"github.com/redis/go-redis/v9"
)

// Is reports whether an error was marked by [Mark] or [Wrap]: trying again later may help.
// Everything else is a defect, of the request or of the service.
//
// The errors have a method Unavailable() bool, for packages that may not import this one.
func Is(err error) bool {
	var marked interface{ Unavailable() bool }
	return errors.As(err, &marked) && marked.Unavailable()
}

// Mark returns an error for which [Is] is true.
func Mark(err error) error { return serverError{err} }

type serverError struct{ error }

func (e serverError) Unwrap() error     { return e.error }
func (e serverError) Unavailable() bool { return true }

// Wrap adds what was being done to an error, and marks it where [IsCause] holds. It returns nil
// for nil.
func Wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: %w", doing, err)
	if !Is(err) && IsCause(err) {
		return Mark(wrapped)
	}
	return wrapped
}

// IsCause reports whether an error of a driver means that its server is unavailable.
func IsCause(err error) bool {
	if refusal := pq.As(err); refusal != nil {
		return isPostgresUnavailable(refusal)
	}
	if refusal, ok := errors.AsType[redis.Error](err); ok {
		return isRedisUnavailable(refusal)
	}
	for _, cause := range []error{
		context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		driver.ErrBadConn, sql.ErrConnDone, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	var network net.Error
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &network) || errors.As(err, &certificate)
}

// LockNotAvailable is the SQLSTATE of a lock that was not granted in time.
const LockNotAvailable = "55P03"

// MissingRight is the SQLSTATE of a right that the database's role does not have.
const MissingRight = "42501"

// isPostgresUnavailable decides by SQLSTATE.
func isPostgresUnavailable(err *pq.Error) bool {
	switch err.Code.Class() {
	case "08", // connection
		"28", // the login is refused
		"40", // a deadlock, or another conflict with a concurrent transaction
		"53", // too many connections, disk full, out of memory
		"57", // cancelled by a timeout, shutting down, starting up
		"58": // the server's own input and output
		return true
	}
	switch err.Code {
	case "25006", // read only: a standby that is not promoted yet
		"3D000",      // there is no such database
		MissingRight, // until the role is granted it
		LockNotAvailable:
		return true
	}
	return false
}

// isRedisUnavailable decides by the first word of the error. Redis 6 has that of a call in a script
// at the end: "ERR Error running script (…): @user_script: 5: -OOM command not allowed …".
func isRedisUnavailable(err redis.Error) bool {
	text := err.Error()
	if _, met, ok := strings.Cut(text, ": -"); ok {
		text = met
	}
	switch word, _, _ := strings.Cut(text, " "); word {
	case "LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "OOM", "MISCONF", "NOREPLICAS", "BUSY":
		return true
	}
	return strings.Contains(err.Error(), "max number of clients reached")
}
