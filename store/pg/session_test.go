package pg_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/store/pg"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
)

// Each of them would open two connections, and wait for this server, which never answers.
func TestSuitable_ConcurrentCallersShareOneCheck(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	opened := make(chan net.Conn, 100)
	go func() {
		defer close(opened)
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			opened <- conn
		}
	}()
	db := storetest.OpenWith(t, pg.Config{URL: "postgres://u@" + listener.Addr().String() + "/d?sslmode=disable"})
	ctx, cancel := context.WithCancel(t.Context())
	const callers = 5
	results := make(chan error, callers)
	for range callers {
		go func() { results <- db.Suitable(ctx) }()
	}
	conns := []net.Conn{<-opened}
	time.Sleep(200 * time.Millisecond) // in which the others would connect
	cancel()
	for range callers {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("Suitable = %v, want that its context ended", err)
		}
	}
	require.NoError(t, listener.Close())
	for conn := range opened {
		conns = append(conns, conn)
	}
	for _, conn := range conns {
		_ = conn.Close()
	}
	if len(conns) != 1 {
		t.Errorf("%d connections for %d callers, want one", len(conns), callers)
	}
}

// The driver would make room for as much as the reply of a proxy says: "TTP/" bytes, 1.4 GB.
func TestPing_AServerThatIsNoPostgresIsNamed(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	}()
	db := storetest.OpenWith(t, pg.Config{URL: "postgres://u@" + listener.Addr().String() + "/d?sslmode=disable"})
	if err := db.Ping(t.Context()); err == nil || !strings.Contains(err.Error(), `it is no postgres: its reply begins with "HTTP/"`) {
		t.Errorf("Ping = %v", err)
	}
	if err := db.Suitable(t.Context()); !unavailable.Is(err) {
		t.Errorf("Suitable = %v, want that it is unavailable", err)
	}
}
