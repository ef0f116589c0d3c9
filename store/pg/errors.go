package pg

import "github.com/lib/pq"

// Splits reports whether an error of a batch may be the fault of one request: a refused value, a
// violated constraint, a deadlock, or a lock that was not available.
func Splits(err error) bool {
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
