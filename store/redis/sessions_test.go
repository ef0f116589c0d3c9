package redis

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/store/storetest"
	"motorpool/store/unavailable"
)

func TestSessionsAreKeptForAllInstances(t *testing.T) {
	for name, address := range map[string]string{"miniredis": miniredis(t), "redis": storetest.StartRedis(t).URL()} {
		t.Run(name, func(t *testing.T) {
			here, there := NewSessions(open(t, address)), NewSessions(open(t, address))
			get := func(key string) string {
				t.Helper()
				value, err := there.Get(t.Context(), key)
				if err != nil {
					t.Fatal(err)
				}
				return string(value)
			}
			if got := get("a"); got != "" {
				t.Errorf("before: %q", got)
			}
			if err := here.Put(t.Context(), "a", []byte("1\x00"), time.Minute); err != nil {
				t.Fatal(err)
			}
			if got := get("a"); got != "1\x00" {
				t.Errorf("put: %q", got)
			}
			if ok, err := there.PutNew(t.Context(), "a", []byte("2"), time.Minute); ok || err != nil {
				t.Errorf("put over it: %v, %v", ok, err)
			}
			if ok, err := there.PutNew(t.Context(), "b", []byte("2"), time.Minute); !ok || err != nil {
				t.Errorf("put new: %v, %v", ok, err)
			}
			var taken atomic.Int64
			var all sync.WaitGroup
			for i := range 10 {
				all.Go(func() {
					value, err := []Sessions{here, there}[i%2].Take(t.Context(), "b")
					if err != nil {
						t.Error(err)
					}
					if value != nil {
						taken.Add(1)
					}
				})
			}
			all.Wait()
			if taken.Load() != 1 {
				t.Errorf("taken %d times", taken.Load())
			}
			for range 2 {
				if err := here.Delete(t.Context(), "a"); err != nil {
					t.Fatal(err)
				}
			}
			if got := get("a"); got != "" {
				t.Errorf("deleted: %q", got)
			}
			if err := here.Put(t.Context(), "c", []byte("3"), 50*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if name == "redis" { // the other one has no clock
				storetest.Eventually(t, "the entry ends", func() bool { return get("c") == "" })
			}
		})
	}
}

func TestSessionsSayThatRedisIsUnavailable(t *testing.T) {
	server := storetest.StartRedis(t)
	sessions := NewSessions(open(t, server.URL()))
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := sessions.Get(t.Context(), "a"); !unavailable.Is(err) {
		t.Errorf("%v", err)
	}
}
