package storetest

import (
	"testing"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

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
