package pg

import (
	"errors"
	"fmt"

	"github.com/lib/pq"

	"motorpool/store/unavailable"
)

// Explain adds to an error what an operator can do about it: about the address of the database, or
// its role. It returns other errors as they are.
func Explain(err error) error {
	refusal := pq.As(err)
	switch {
	case errors.Is(err, pq.ErrSSLNotSupported):
		return fmt.Errorf("%w\nset up TLS at the server, or, where the network is private, add ?sslmode=disable to --database-url", err)
	case refusal != nil && refusal.Code == unavailable.MissingRight:
		return fmt.Errorf("%w\nrun it as the role that owns the tables: see --database-url", err)
	case unavailable.Is(err) && unavailable.IsCause(err): // not a key that opens no secret
		return fmt.Errorf("%w\nis that the right database? see --database-url", err)
	}
	return err
}

// Refuses reports whether Postgres refuses the login, the database or a right: an operator has to
// correct that.
func Refuses(err error) bool {
	refusal := pq.As(err)
	return refusal != nil && (refusal.Code.Class() == "28" || refusal.Code == "3D000" || refusal.Code == unavailable.MissingRight)
}

// Splits reports whether an error of a batch may be the fault of one request: a refused value, a
// violated constraint, a deadlock, or a lock that was not available. A table that another
// transaction has locked is no fault of one request.
func Splits(err error) bool {
	if locked, ok := errors.AsType[*LockedError](err); ok && locked.whole {
		return false
	}
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
