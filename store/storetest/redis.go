package storetest

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// sharedRedis is the Redis of all tests but those that kill theirs. It starts when the first test
// needs it.
var sharedRedis struct {
	once   sync.Once
	dir    string
	server *devstack.Redis
	err    error
	next   atomic.Int64 // number of a database
}

// maxRedisDatabases is more than the tests of a package need.
const maxRedisDatabases = "1000"

// Redis returns the address of a separate database of the Redis that the package's tests share. A
// test may flush it, and channels are those of all.
func Redis(t testing.TB) string {
	t.Helper()
	devstack.Need(t, devstack.Available(devstack.RedisServer))
	s := &sharedRedis
	s.once.Do(func() {
		if s.dir, s.err = os.MkdirTemp("", "redis-test-"); s.err == nil {
			s.server, s.err = devstack.StartRedis(s.dir, nil, "--databases", maxRedisDatabases)
		}
	})
	require.NoError(t, s.err)
	return fmt.Sprintf("%s/%d", strings.TrimSuffix(s.server.URL(), "/0"), s.next.Add(1))
}

// BothRedis returns the addresses of a Redis in this process, and of a real one.
func BothRedis(t testing.TB) map[string]string {
	t.Helper()
	return map[string]string{"miniredis": StartMiniredis(t).URL(), "redis": Redis(t)}
}

func stopRedis() {
	if sharedRedis.server != nil {
		_ = sharedRedis.server.Close()
	}
	_ = os.RemoveAll(sharedRedis.dir)
}

// NoRedis is the address of a server that refuses each connection.
const NoRedis = "redis://127.0.0.1:1"

// StartRedis starts a Redis for one test.
func StartRedis(t testing.TB) *devstack.Redis {
	t.Helper()
	devstack.NeedServer(t, devstack.RedisServer)
	s, err := devstack.StartRedis(t.TempDir(), nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// StartMiniredis starts a Redis in this process, whose clock a test may set.
func StartMiniredis(t testing.TB) *devstack.Miniredis {
	t.Helper()
	s, err := devstack.StartMiniredis("127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}
