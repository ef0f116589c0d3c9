package places

import (
	"errors"
	"time"
)

const (
	stationsEvery = time.Minute // between two loads of the stations
	loadAgain     = time.Second // after a failure

	pace      = time.Second      // between two requests to the geocoder, of all instances together
	askFor    = 10 * time.Second // the longest that an answer may take
	queueSize = 100              // places that wait for a request; more are left to later reads
	answers   = 200_000          // that are kept; about 30 MB
	keepFor   = 30 * 24 * time.Hour
	cellSize  = 0.0003 // degrees: 33 m, so that two positions of a cell are less than 50 m apart

	firstBackOff = 5 * time.Second
	maxBackOff   = 10 * time.Minute
	maxPutOff    = 24 * time.Hour // whatever the server says
)

// putOff returns how long to send no request after a number of failures in a row, the last
// with err.
func putOff(failures int, err error) time.Duration {
	const doublings = 7 // beyond maxBackOff
	wait := min(firstBackOff<<min(failures-1, doublings), maxBackOff)
	var hint interface{ RetryAfter() time.Duration }
	if errors.As(err, &hint) {
		wait = max(wait, min(hint.RetryAfter(), maxPutOff))
	}
	return wait
}
