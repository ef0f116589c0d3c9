package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/httpapi"
	"motorpool/httpapi/connections"
	"motorpool/internal/metricstest"
	"motorpool/internal/require"
)

// measured is a bounded listener with its metrics.
type measured struct {
	*connections.Listener
	metrics *prometheus.Registry
}

// bounded serves the API on at most max connections.
func bounded(t *testing.T, a *api, max int) measured {
	t.Helper()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	registry := prometheus.NewRegistry()
	bound := connections.Bound(listener, max, registry, slog.New(slog.DiscardHandler))
	serve(t, a.handler, bound)
	return measured{bound, registry}
}

// serve serves a handler until it is closed, or the test ends.
func serve(t *testing.T, handler http.Handler, on net.Listener) *http.Server {
	t.Helper()
	server := httpapi.NewServer("", handler)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(on) })
	t.Cleanup(func() { _ = server.Close(); serving.Wait() })
	return server
}

// metric returns a sample of a registry, by its name without the prefix.
func metric(t *testing.T, registry prometheus.Registerer, name string) int64 {
	t.Helper()
	return metricstest.Sum(t, registry, "motorpool_"+name)
}

// line is a caller's connection.
type line struct {
	net.Conn
	read *bufio.Reader
}

func dial(t *testing.T, to net.Listener) line {
	t.Helper()
	c := must(net.Dial("tcp", to.Addr().String()))
	t.Cleanup(func() { _ = c.Close() })
	return line{c, bufio.NewReader(c)}
}

// status requests a vehicle's status, and returns the HTTP status; 0: the connection was closed.
func (l line) status(t *testing.T, token string) int {
	t.Helper()
	_ = l.SetDeadline(time.Now().Add(time.Minute))
	if _, err := fmt.Fprintf(l, "GET %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\n\r\n", status42, token); err != nil {
		return 0
	}
	response, err := http.ReadResponse(l.read, nil)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return 0
	}
	return response.StatusCode
}

// ended waits until the server has closed the connection, and reports whether it has.
func (l line) ended(t *testing.T, within time.Duration) bool {
	t.Helper()
	_ = l.SetReadDeadline(time.Now().Add(within))
	_, err := l.read.ReadByte()
	return err != nil && !errors.Is(err, os.ErrDeadlineExceeded)
}

func TestConnections_IdleUnauthenticatedOnesMakeRoom(t *testing.T) {
	a := newAPI(t)
	const most = 5
	bound := bounded(t, a, most)
	authenticated := dial(t, bound)
	if got := authenticated.status(t, adminToken()); got != 200 {
		t.Fatalf("authenticated connection: status %d", got)
	}
	refused := dial(t, bound)
	if got := refused.status(t, "a.b.c"); got != 401 { // an invalid token does not authenticate
		t.Fatalf("invalid token: status %d", got)
	}
	var idle []line
	for range 3 * most {
		idle = append(idle, dial(t, bound))
	}
	for i, l := range append([]line{refused}, idle[:len(idle)-most+1]...) {
		if !l.ended(t, 30*time.Second) {
			t.Errorf("idle connection %d is still open", i)
		}
	}
	same(t, idle[len(idle)-1].status(t, adminToken()), 200, "newest connection: status")
	same(t, authenticated.status(t, adminToken()), 200, "authenticated connection: status")
	open, evicted, denied := metric(t, bound.metrics, "connections_open"), metric(t, bound.metrics,
		"connections_evicted_total"), metric(t, bound.metrics, "connections_refused_total")
	if open != most || evicted != 2*most+2 || denied != 0 {
		t.Errorf("%d connections open, %d evicted, %d refused", open, evicted, denied)
	}
}

func TestConnections_OneClientCannotHoldThemAll(t *testing.T) {
	a := newAPI(t)
	const most = 20
	bound := bounded(t, a, most)
	var held []line
	for range most {
		held = append(held, dial(t, bound))
		if got := held[len(held)-1].status(t, clientToken()); got == 0 {
			t.Fatal("a connection was closed before the limit")
		}
	}
	var others []line
	for range most / 2 {
		others = append(others, dial(t, bound))
		if got := others[len(others)-1].status(t, adminToken()); got != 200 {
			t.Fatalf("another caller next to %d connections of one client: status %d", most, got)
		}
	}
	if got := held[0].status(t, clientToken()); got == 0 {
		t.Error("the client's oldest connection was closed, although it was within its share")
	}
	for _, l := range append(held, others...) {
		_ = l.Close()
	}
	for deadline := time.Now().Add(time.Minute); metric(t, bound.metrics, "connections_open") > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d connections are still open", metric(t, bound.metrics, "connections_open"))
		}
	}
	again := dial(t, bound) // closed connections are not counted
	if got := again.status(t, clientToken()); got == 0 {
		t.Fatal("a connection was closed below the limit")
	}
	same(t, metric(t, bound.metrics, "connections_unauthenticated"), 0, "unauthenticated connections")
}

func TestConnections_WhereAllAreAuthenticatedANewOneIsClosed(t *testing.T) {
	a := newAPI(t)
	bound := bounded(t, a, 2)
	first, second := dial(t, bound), dial(t, bound)
	for _, l := range []line{first, second} {
		if got := l.status(t, adminToken()); got != 200 {
			t.Fatalf("status %d, want 200", got)
		}
	}
	if l := dial(t, bound); !l.ended(t, 30*time.Second) {
		t.Error("a third connection was accepted")
	}
	_ = first.Close()
	for deadline := time.Now().Add(time.Minute); ; { // the server may notice the end later
		if dial(t, bound).status(t, adminToken()) == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a closed connection still counts")
		}
	}
	same(t, second.status(t, adminToken()), 200, "the other connection: status")
}

// recordingConn records its read deadlines.
type recordingConn struct {
	net.Conn
	mu        sync.Mutex
	deadlines []time.Duration // relative to the time when they were set
}

func (c *recordingConn) SetReadDeadline(t time.Time) error {
	if !t.IsZero() {
		c.mu.Lock()
		c.deadlines = append(c.deadlines, time.Until(t))
		c.mu.Unlock()
	}
	return c.Conn.SetReadDeadline(t)
}

func (c *recordingConn) longest() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	var longest time.Duration
	for _, d := range c.deadlines {
		longest = max(longest, d)
	}
	return longest
}

type recordingListener struct {
	net.Listener
	accepted chan *recordingConn
}

func (l recordingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	recorded := &recordingConn{Conn: c}
	l.accepted <- recorded
	return recorded, nil
}

func TestConnections_IdleTimeIsShortBeforeTheFirstValidToken(t *testing.T) {
	a := newAPI(t)
	tcp := must(net.Listen("tcp", "127.0.0.1:0"))
	recording := recordingListener{tcp, make(chan *recordingConn, 1)}
	bound := connections.Bound(recording, 10, nil, slog.New(slog.DiscardHandler))
	serve(t, a.handler, bound)

	caller := dial(t, bound)
	conn := <-recording.accepted
	for range 2 { // the second request follows the first idle time
		if got := caller.status(t, "a.b.c"); got != 401 {
			t.Fatalf("status %d", got)
		}
	}
	if got := conn.longest(); got > 20*time.Second {
		t.Errorf("an unauthenticated connection may be idle for %v", got)
	}
	for range 2 {
		if got := caller.status(t, adminToken()); got != 200 {
			t.Fatalf("status %d", got)
		}
	}
	if got := conn.longest(); got < time.Minute {
		t.Errorf("an authenticated connection may be idle for only %v", got)
	}
}

// When the service stops, a caller that has pipelined a second request gets the answer to the
// first, and a regular end instead of a reset.
func TestConnections_PipelinedRequestAtShutdownCausesNoReset(t *testing.T) {
	for name, path := range map[string]string{"order": lock, "read": status42} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			entered, release := make(chan struct{}, 1), make(chan struct{})
			handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				entered <- struct{}{}
				<-release
				a.handler.ServeHTTP(w, r)
			})
			tcp, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			bound := connections.Bound(tcp, 10, nil, slog.New(slog.DiscardHandler))
			server := httpapi.NewServer("", handler)
			begun := make(chan struct{})
			server.RegisterOnShutdown(func() { close(begun) })
			var serving, ending sync.WaitGroup
			serving.Go(func() { _ = server.Serve(bound) })
			t.Cleanup(serving.Wait)

			caller := dial(t, bound)
			method := map[string]string{lock: "POST", status42: "GET"}[path]
			request := fmt.Sprintf(
				"%s %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n", method, path,
				adminToken(),
			)
			send := func() {
				_, err := io.WriteString(caller, request)
				require.NoError(t, err)
			}
			send()
			<-entered
			send() // it arrives while the first is served
			ending.Go(func() { _ = server.Shutdown(context.Background()) })
			<-begun
			close(release)
			ending.Wait() // the caller reads after the server has closed the connection
			_ = caller.SetDeadline(time.Now().Add(time.Minute))
			response, err := http.ReadResponse(caller.read, nil)
			require.NoError(t, err, "first answer")
			defer response.Body.Close()
			if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != 200 || !response.Close {
				t.Errorf("first answer: %d, close %v, %v", response.StatusCode, response.Close, err)
			}
			if _, err := caller.read.ReadByte(); !errors.Is(err, io.EOF) {
				t.Errorf("after the first answer: %v, want the end of the connection", err)
			}
		})
	}
}
