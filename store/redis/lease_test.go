package redis

import (
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/storetest"
)

func TestLease_HeldByOneInstanceUntilItExpires(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			here, there := open(t, address), open(t, address)
			lease := func(db *DB, instance string, keep time.Duration) bool {
				t.Helper()
				mine, err := db.TryLease(t.Context(), "test", instance, keep)
				require.NoError(t, err)
				return mine
			}
			if !lease(here, "a", time.Hour) || lease(there, "b", time.Hour) || !lease(here, "a", time.Millisecond) {
				t.Error("want the lease held by the first instance alone")
			}
			// A lease from a time at which Redis's clock had leapt ahead does not last until then.
			if !lease(here, "a", 74*365*24*time.Hour) || !lease(there, "b", time.Second) || !lease(there, "b", time.Hour) {
				t.Error("want a lease of 74 years free for a caller that needs one of a second")
			}
			if name == "redis" { // the time of miniredis does not pass
				for deadline := time.Now().Add(time.Minute); !lease(there, "b", time.Hour); time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("a lease that was not extended did not expire")
					}
				}
				if lease(here, "a", time.Hour) {
					t.Error("the former instance still holds the lease")
				}
			}
		})
	}
}
