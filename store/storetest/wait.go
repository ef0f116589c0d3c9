package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/pg"
)

// Patience bounds every wait of these tests.
const Patience = 30 * time.Second

// Eventually polls until a condition holds.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(Patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			require.Late(t, "waited %v for: %s", Patience, what)
		}
	}
}

// WaitForLock waits until a statement waits for a lock.
func WaitForLock(t testing.TB, db *pg.DB) {
	t.Helper()
	Eventually(t, "a statement waits for a lock", func() bool {
		var waiting int
		err := db.Pool.Get(
			&waiting,
			`select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
		)
		require.NoError(t, err)
		return waiting > 0
	})
}

// ForAtLeast returns a context that ends when so much time has passed and enough has happened, at
// the latest after Patience: a busy machine takes longer.
func ForAtLeast(t testing.TB, length time.Duration, enough func() bool) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	var watching sync.WaitGroup
	watching.Go(func() {
		defer cancel()
		for begin := time.Now(); ctx.Err() == nil && (time.Since(begin) < length || !enough()); {
			time.Sleep(20 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); watching.Wait() })
	return ctx
}

// Run runs something until the test ends.
func Run(t testing.TB, run func(context.Context) error) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		stop()
		assert.NoError(t, <-done)
	})
}

// Clock is a clock that a test moves. It is safe for concurrent use.
type Clock struct {
	mu sync.Mutex
	at time.Time
}

// NewClock returns a clock that stands at a time.
func NewClock(at time.Time) *Clock { return &Clock{at: at} }

// Now returns the time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

// Move moves the clock.
func (c *Clock) Move(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}
