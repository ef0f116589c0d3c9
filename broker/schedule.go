package broker

import "time"

const (
	firstResend = 2 * time.Second        // most answers take at least as long
	resendGrow  = 1.5                    // each wait is longer than the one before
	resendSpan  = 0.2                    // part of a wait that jitter may take or add
	patience    = 2                      // a unit that said received is asked less often
	airRetry    = 250 * time.Millisecond // until the MQTT client has taken the message once
	expiryGuard = 500 * time.Millisecond // before the expiry nothing is published any more
)

// resendAfter returns how long after the attempt'th publication, counted from 1,
// the same message is published again. Jitter is in [0, 1).
func resendAfter(attempt int, received bool, jitter float64) time.Duration {
	wait := float64(firstResend)
	for range attempt - 1 {
		wait *= resendGrow
	}
	if received {
		wait *= patience
	}
	return time.Duration(wait * (1 + resendSpan*(2*jitter-1)))
}
