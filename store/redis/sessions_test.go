package redis

import (
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
)

func TestSessions_AreSharedByAllInstances(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			here, there := NewSessions(open(t, address)), NewSessions(open(t, address))
			get := func(key string) string {
				t.Helper()
				value, err := there.Get(t.Context(), key)
				require.NoError(t, err)
				return string(value)
			}
			assert.Equal(t, get("a"), "", "before Put")
			require.NoError(t, here.Put(t.Context(), "a", []byte("1\x00"), time.Minute))
			assert.Equal(t, get("a"), "1\x00", "after Put")
			if ok, err := there.PutNew(t.Context(), "a", []byte("2"), time.Minute); ok || err != nil {
				t.Errorf("PutNew over an existing entry: %v, %v", ok, err)
			}
			for range 2 { // the driver repeats it where the reply is lost
				if ok, err := there.PutNew(t.Context(), "b", []byte("2"), time.Minute); !ok || err != nil {
					t.Errorf("PutNew of a new entry: %v, %v", ok, err)
				}
			}
			for range 2 {
				require.NoError(t, here.Delete(t.Context(), "a"))
			}
			assert.Equal(t, get("a"), "", "after Delete")
			swap := func(old, value string, want bool) {
				t.Helper()
				if ok, err := here.Swap(t.Context(), "d", []byte(old), []byte(value), time.Minute); ok != want || err != nil {
					t.Errorf("Swap of %q for %q: %v, %v; want %v", old, value, ok, err, want)
				}
			}
			swap("1", "2", false) // there is none, as after a sign-out
			assert.Equal(t, get("d"), "", "Swap made the entry")
			require.NoError(t, there.Put(t.Context(), "d", []byte("1"), time.Minute))
			swap("0", "2", false)
			swap("1", "2\x00", true)
			swap("1", "2\x00", true) // the reply was lost
			assert.Equal(t, get("d"), "2\x00", "after Swap")
			swap("1", "", false)
			swap("2\x00", "", true)
			swap("2\x00", "", true)
			assert.Equal(t, get("d"), "", "after Swap for nothing")
			require.NoError(t, here.Put(t.Context(), "c", []byte("3"), 50*time.Millisecond))
			if name == "redis" { // the time of miniredis does not pass
				storetest.Eventually(t, "the entry expires", func() bool { return get("c") == "" })
			}
		})
	}
}

func TestSessions_AreUnavailableWithoutRedis(t *testing.T) {
	t.Parallel()
	sessions := NewSessions(open(t, storetest.NoRedis))
	if _, err := sessions.Get(t.Context(), "a"); !unavailable.Is(err) {
		t.Errorf("Get = %v, want unavailable", err)
	}
}
