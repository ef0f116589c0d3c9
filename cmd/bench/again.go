package main

import (
	"context"
	"time"
)

// floorAttempts is how often a round of a floor is made, where it fails.
const floorAttempts = 3

// again makes a round of a floor, and repeats it where it failed. A floor is what others are measured against: that a busy machine
// makes one fail says nothing about the service. It returns the last attempt.
func again[R any](ctx context.Context, round func() (R, error), sound func(R) bool) (r R, err error) {
	for attempt := 1; ; attempt++ {
		r, err = round()
		if err == nil && sound(r) || attempt == floorAttempts || ctx.Err() != nil {
			return r, err
		}
		say("the floor failed, and is measured again: attempt %d of %d (%v)", attempt+1, floorAttempts, err)
	}
}

// repeated returns rounds of a floor that are repeated where a call was refused.
func repeated(round func(context.Context, int, time.Duration) (callRound, error)) func(context.Context, int, time.Duration) (callRound, error) {
	return func(ctx context.Context, inFlight int, d time.Duration) (callRound, error) {
		return again(ctx, func() (callRound, error) { return round(ctx, inFlight, d) }, noneRefused)
	}
}

func noneRefused(r callRound) bool { return r.Refused == 0 }

func anything[R any](R) bool { return true }
