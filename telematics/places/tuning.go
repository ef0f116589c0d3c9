package places

import (
	"errors"
	"time"
)

const (
	pace      = time.Second      // between an answer and the next request, over all instances
	askFor    = 10 * time.Second // the longest that an answer may take
	slack     = 5 * time.Second  // for what an instance does between two requests
	hold      = askFor + pace + slack
	idle      = 5 * time.Second // until the next check for missing addresses, after one without any
	shift     = 10              // requests with one lease, then another instance may acquire it
	takeEvery = time.Second     // between two attempts to acquire the lease
	endWithin = 2 * time.Second // the longest that releasing the lease may take

	firstBackOff = 5 * time.Second
	maxBackOff   = 10 * time.Minute
	maxPutOff    = 24 * time.Hour // whatever the server says

	keepFor     = 30 * 24 * time.Hour // an address; streets are renamed
	forgetEvery = time.Hour
)

// putOff returns how long to send no request after a number of failures in a row, the last
// with err.
func putOff(failures int, err error) time.Duration {
	wait := firstBackOff
	for range failures - 1 {
		if wait *= 2; wait >= maxBackOff {
			wait = maxBackOff
			break
		}
	}
	var hint interface{ RetryAfter() time.Duration }
	if errors.As(err, &hint) {
		wait = max(wait, min(hint.RetryAfter(), maxPutOff))
	}
	return wait
}
