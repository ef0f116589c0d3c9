package pg

import (
	"errors"

	"github.com/lib/pq"
)

// Splits reports whether an error of a batch may be the fault of one request: a refused value, a
// violated constraint, a deadlock, or a lock that was not available. A table that another
// transaction has locked is no fault of one request.
func Splits(err error) bool {
	if locked := (*LockedError)(nil); errors.As(err, &locked) && locked.whole {
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
