package rental

import "time"

// backoff is how long to wait after tries in a row that brought no news.
var backoff = [...]time.Duration{5 * time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute}

// againAfter returns how long to wait after a number of tries without a result, counted from 1.
func againAfter(tries int) time.Duration { return backoff[min(max(tries, 1), len(backoff))-1] }

// dunning is how long to wait after successive declines of one card.
var dunning = [...]time.Duration{time.Hour, 24 * time.Hour, 3 * 24 * time.Hour, 7 * 24 * time.Hour}

// retryAfter returns how long to wait after a number of declines of one card, counted from 1; false: it is given up.
func retryAfter(declines int) (time.Duration, bool) {
	if declines > len(dunning) {
		return 0, false
	}
	return dunning[max(declines, 1)-1], true
}

// untold is how long a charge waits for the processor to tell what others do about it, before it is looked at all the same:
// notices may be lost.
var untold = map[ChargeState]time.Duration{
	RequiresAction: time.Hour,      // the card's owner confirms
	Authorized:     24 * time.Hour, // the processor gives the hold up
}
