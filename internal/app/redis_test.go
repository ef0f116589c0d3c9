package app

import (
	"bufio"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

	at, err := url.Parse(server.URL())
	require.NoError(t, err)
	operator, err := net.Dial("tcp", at.Host)
	require.NoError(t, err)
	defer operator.Close()
	require.NoError(t, operator.SetDeadline(time.Now().Add(time.Minute)))
	const wanted = 5
	for deadline, answers, open := time.Now().Add(30*time.Second), bufio.NewReader(operator), 0; ; {
		var many errgroup.Group
		for range 100 {
			many.Go(func() error { return db.Ready(t.Context()) })
		}
		require.NoError(t, many.Wait())
		if open, err = ended(operator, answers); err != nil {
			t.Fatal(err)
		}
		require.NoError(t, db.Ready(t.Context()), "after Redis closed %d connections", open)
		if open >= wanted {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d concurrent connections, want %d", open, wanted)
		}
	}
}

// ended makes Redis close all connections except that of the operator, and returns their number.
func ended(operator net.Conn, answers *bufio.Reader) (int, error) {
	if _, err := operator.Write([]byte("CLIENT KILL TYPE normal SKIPME yes\r\n")); err != nil {
		return 0, err
	}
	line, err := answers.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var n int
	if _, err := fmt.Sscanf(strings.TrimSpace(line), ":%d", &n); err != nil {
		return 0, fmt.Errorf("redis replied %q: %w", line, err)
	}
	return n, nil
}
