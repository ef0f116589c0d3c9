package store

import (
	"context"
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

// Away reports whether an error says that a server could not be reached, or could
// not serve in time: trying again later may help. Everything else is a defect, of
// the request or of ours.
//
// The errors themselves have a method Unavailable() bool, for those who may not
// know this package.
func Away(err error) bool {
	var away interface{ Unavailable() bool }
	return errors.As(err, &away) && away.Unavailable()
}

// awayError marks the error of a server that is away.
type awayError struct{ error }

func (e awayError) Unwrap() error     { return e.error }
func (e awayError) Unavailable() bool { return true }

// wrap says what was being done when an error came, and whether its server was away.
func wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	wrapped := fmt.Errorf("%s: %w", doing, err)
	if !Away(err) && isAway(err) {
		return awayError{wrapped}
	}
	return wrapped
}

func isAway(err error) bool {
	if refusal := pq.As(err); refusal != nil {
		return isAwayState(refusal)
	}
	var refusal redis.Error
	if errors.As(err, &refusal) {
		return isAwayReply(refusal)
	}
	for _, away := range []error{
		context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed,
		driver.ErrBadConn, sql.ErrConnDone, redis.ErrPoolTimeout, redis.ErrPoolExhausted,
	} {
		if errors.Is(err, away) {
			return true
		}
	}
	var network net.Error
	return errors.As(err, &network)
}

// lockNotAvailable is the SQLSTATE of a lock that was not to be had in time.
const lockNotAvailable = "55P03"

// isAwayState judges what Postgres answered, by SQLSTATE.
func isAwayState(err *pq.Error) bool {
	switch err.Code.Class() {
	case "08", // connection
		"53", // too many connections, disk full, out of memory
		"57", // cancelled by a timeout, shutting down, starting up
		"58": // the server's own input and output
		return true
	}
	switch err.Code {
	case "25006", // read only: a standby that is not promoted yet
		lockNotAvailable:
		return true
	}
	return false
}

// isAwayReply judges what Redis answered, by the word that its errors begin with.
func isAwayReply(err redis.Error) bool {
	switch word, _, _ := strings.Cut(err.Error(), " "); word {
	case "LOADING", "READONLY", "CLUSTERDOWN", "MASTERDOWN", "TRYAGAIN", "OOM", "MISCONF", "NOREPLICAS", "BUSY":
		return true
	}
	return strings.Contains(err.Error(), "max number of clients reached")
}

// splits reports whether an error of a batch may be one member's fault: a value that
// the database refuses, or a lock that went the wrong way round or was not to be had.
func splits(err error) bool {
	refusal := pq.As(err)
	if refusal == nil {
		return false
	}
	switch refusal.Code.Class() {
	case "22", "23", "40", "55":
		return true
	}
	return false
}
