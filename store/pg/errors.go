package pg

import "github.com/lib/pq"

// Splits reports whether an error of a batch may be one member's fault: a value that
// the database refuses, or a lock that went the wrong way round or was not to be had.
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
