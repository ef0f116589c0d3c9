package app

import (
	"path/filepath"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/redis"
)

// A call is repeated at most once, so it must not get several connections in sequence that Redis
// has closed.
func TestRedis_ClosedConnectionsAreNotUsed(t *testing.T) {
	devstack.NeedServer(t, devstack.RedisServer)
	server, err := devstack.StartRedis(filepath.Join(t.TempDir(), "redis"), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	db, err := redis.New(redis.Config{URL: server.URL(), Timeout: time.Minute})
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })

	options, err := goredis.ParseURL(server.URL())
	require.NoError(t, err)
	operator := goredis.NewClient(options)
	defer operator.Close()
	const wanted = 5
	for deadline := time.Now().Add(30 * time.Second); ; {
		var many errgroup.Group
		for range 100 {
			many.Go(func() error { return db.Ready(t.Context()) })
		}
		require.NoError(t, many.Wait())
		open, err := operator.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Result()
		require.NoError(t, err)
		require.NoError(t, db.Ready(t.Context()), "after Redis closed %d connections", open)
		if open >= wanted {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d concurrent connections, want %d", open, wanted)
		}
	}
}
