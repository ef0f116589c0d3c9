package httpapi_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/httpapi"
	"motorpool/httpapi/connections"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func TestServer_TimeLimitsAllowTheLongestCommand(t *testing.T) {
	s := httpapi.NewServer("127.0.0.1:0", http.NotFoundHandler())
	if s.WriteTimeout <= s.ReadTimeout+telematics.MaxBudget || s.ReadHeaderTimeout <= 0 || s.IdleTimeout <= 0 || s.MaxHeaderBytes <= 0 {
		t.Errorf("time limits %+v, want a write timeout longer than the longest command", s)
	}
}

// waitingOrders makes orders wait until release is called. entered receives one value per order.
func waitingOrders(t *testing.T) (a *api, entered chan struct{}, release func()) {
	t.Helper()
	a = newAPI(t)
	entered, vehicle := make(chan struct{}, 10), make(chan struct{})
	a.controller.send = func(_ context.Context, o delivery.Order) (telematics.Command, error) {
		entered <- struct{}{}
		<-vehicle
		return settled(o, telematics.Succeeded), nil
	}
	release = sync.OnceFunc(func() { close(vehicle) })
	t.Cleanup(release)
	return a, entered, release
}

// Shutdown stops accepting connections, answers the requests that wait for a vehicle, and then
// returns; with and without TLS, over HTTP/1.1 and HTTP/2.
func TestServer_ShutdownAnswersWaitingOrders(t *testing.T) {
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS() // only its certificate is used
	defer certified.Close()
	roots := certified.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	for name, c := range map[string]struct {
		scheme, proto string
	}{"plain": {"http", "HTTP/1.1"}, "TLS": {"https", "HTTP/1.1"}, "HTTP2": {"https", "HTTP/2.0"}} {
		t.Run(name, func(t *testing.T) {
			a, entered, release := waitingOrders(t)
			listener := must(net.Listen("tcp", "127.0.0.1:0"))
			registry := prometheus.NewRegistry()
			bound := connections.Bound(listener, 10, registry, slog.New(slog.DiscardHandler))
			server := httpapi.NewServer("", a.handler)
			server.TLSConfig = &tls.Config{Certificates: certified.TLS.Certificates}
			begun := make(chan struct{})
			server.RegisterOnShutdown(func() { close(begun) })
			var running sync.WaitGroup
			defer running.Wait()
			running.Go(func() {
				serve := server.Serve
				if c.scheme == "https" {
					serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
				}
				if err := serve(bound); !errors.Is(err, http.ErrServerClosed) {
					t.Errorf("Serve: %v", err)
				}
			})
			transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: c.proto == "HTTP/2.0"}
			defer transport.CloseIdleConnections()
			running.Go(func() {
				request, _ := http.NewRequest(http.MethodPost, c.scheme+"://"+listener.Addr().String()+lock, nil)
				request.Header.Set("Authorization", "Bearer "+adminToken())
				response, err := (&http.Client{Transport: transport}).Do(request)
				if err != nil {
					t.Errorf("waiting order: %v", err)
					return
				}
				defer response.Body.Close()
				if response.StatusCode != http.StatusOK || response.Proto != c.proto {
					t.Errorf("waiting order: %s over %s", response.Status, response.Proto)
				}
			})
			<-entered
			same(t, metric(t, registry, "connections_unauthenticated"), 0, "connections without a valid token")
			running.Go(func() {
				ok(t, server.Shutdown(context.Background()), "Shutdown")
			})
			<-begun
			if late, err := net.Dial("tcp", listener.Addr().String()); err == nil {
				_ = late.Close()
				t.Error("a connection was accepted during the shutdown")
			}
			release()
		})
	}
}

func TestServer_ListenAndServeEndsWithShutdown(t *testing.T) {
	server := httpapi.NewServer("127.0.0.1:0", http.NotFoundHandler())
	listening := make(chan struct{})
	server.BaseContext = func(net.Listener) context.Context { close(listening); return context.Background() }
	ended := make(chan error, 1)
	go func() { ended <- server.ListenAndServe() }()
	<-listening
	ok(t, server.Shutdown(t.Context()), "Shutdown")
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		t.Errorf("ListenAndServe: %v", err)
	}
}

// Close does not wait for orders: their connections are closed.
func TestServer_CloseEndsWaitingConnections(t *testing.T) {
	a, entered, _ := waitingOrders(t)
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	server := httpapi.NewServer("", a.handler)
	var serving sync.WaitGroup
	defer serving.Wait()
	serving.Go(func() { _ = server.Serve(listener) })
	caller := dial(t, listener)
	if _, err := fmt.Fprintf(caller, "POST %s HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer %s\r\nContent-Length: 0\r\n\r\n", lock, adminToken()); err != nil {
		t.Fatal(err)
	}
	<-entered
	ok(t, server.Close(), "Close")
	if !caller.ended(t, time.Minute) {
		t.Error("the connection is still open")
	}
}

func TestServer_ConcurrentCallersGetTheirAnswers(t *testing.T) {
	a := newAPI(t)
	tokens := []string{adminToken(), edKey().mint(claims(map[string]any{"agency_id": 1})), clientToken()}
	wants := []int{200, 200, 403}
	var callers sync.WaitGroup
	for i := range 60 {
		callers.Go(func() {
			id := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
			request := httptest.NewRequest(http.MethodPost, lock, nil)
			if i%2 == 0 {
				request = httptest.NewRequest(http.MethodGet, status42, nil)
			}
			request.Header.Set("Authorization", "Bearer "+tokens[i%3])
			request.Header.Set("X-Request-ID", id)
			recorded := httptest.NewRecorder()
			a.handler.ServeHTTP(recorded, request)
			if recorded.Code != wants[i%3] || recorded.Header().Get("X-Request-ID") != id {
				t.Errorf("caller %d: status %d, request ID %s", i, recorded.Code, recorded.Header().Get("X-Request-ID"))
			}
		})
	}
	callers.Wait()
}
