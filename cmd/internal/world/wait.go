package world

import (
	"context"
	"fmt"
	"time"
)

// pollInterval is between two checks of a condition.
const pollInterval = 50 * time.Millisecond

// Eventually waits until a condition holds. The error names the condition that did not hold in time.
func Eventually(ctx context.Context, within time.Duration, condition string, holds func(context.Context) bool) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for !holds(ctx) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %s: %w", within, condition, ctx.Err())
		case <-time.After(pollInterval):
		}
	}
	return nil
}

// Pause waits, unless the context ends first.
func Pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
