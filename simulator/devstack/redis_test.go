package devstack_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

func TestMiniredis_KeyExpiresInRealTime(t *testing.T) {
	server, err := devstack.StartMiniredis("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	options, err := redis.ParseURL(server.URL())
	require.NoError(t, err)
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	ctx := context.Background()
	const life = 300 * time.Millisecond
	born := time.Now()
	for key, ttl := range map[string]time.Duration{"short": life, "eternal": 0} {
		require.NoError(t, client.Set(ctx, key, "value", ttl).Err())
	}
	exists := func(key string) bool {
		// A script is how the pending table reads keys; a plain command must agree.
		n, err := client.Eval(ctx, `return redis.call("exists", KEYS[1])`, []string{key}).Int()
		require.NoError(t, err)
		plain, err := client.Exists(ctx, key).Result()
		require.NoError(t, err)
		if n == 0 && plain != 0 {
			t.Error("a key expired for a script but exists for a command")
		}
		return n == 1
	}
	if !exists("short") && time.Since(born) < life {
		t.Fatal("the key expired immediately")
	}
	eventually(t, "the key to expire", func() bool { return !exists("short") })
	if age := time.Since(born); age < life {
		t.Errorf("the key expired after %s, want %s", age, life)
	}
	if !exists("eternal") {
		t.Error("a key without a time to live expired")
	}
}
