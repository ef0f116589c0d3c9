package httpapi_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"motorpool/httpapi"
	"motorpool/httpapi/connections"
	"motorpool/internal/assert"
	"motorpool/internal/require"
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
				same(t, response.StatusCode, http.StatusOK, "statusCode")
				same(t, response.Proto, c.proto, "proto")
			})
			<-entered
			same(t, metric(t, registry, "connections_unauthenticated"), 0, "connections without a valid token")
			running.Go(func() {
				assert.NoError(t, server.Shutdown(context.Background()), "Shutdown")
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

func TestServer_ConcurrentCallersGetTheirAnswers(t *testing.T) {
	a := newAPI(t)
	tokens := []string{adminToken(), edKey().mint(claims(claimSet{"agency_id": 1})), clientToken()}
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
			same(t, recorded.Code, wants[i%3], "%v: code", i)
			same(t, recorded.Header().Get("X-Request-ID"), id, "%v: request ID", i)
		})
	}
	callers.Wait()
}

func TestRemoteAddress_IsTakenFromTrustedProxiesOnly(t *testing.T) {
	_, balancers, err := net.ParseCIDR("10.0.0.0/24")
	require.NoError(t, err)
	_, six, err := net.ParseCIDR("2001:db8::/64")
	require.NoError(t, err)
	for name, c := range map[string]struct {
		proxies   []*net.IPNet
		from      string
		forwarded []string
		want      string
	}{
		"no proxy is trusted":       {nil, "10.0.0.5:1", []string{"203.0.113.7"}, "10.0.0.5:1"},
		"a caller that is no proxy": {[]*net.IPNet{balancers}, "198.51.100.9:1", []string{"203.0.113.7"}, "198.51.100.9:1"},
		"a caller on loopback":      {[]*net.IPNet{balancers}, "127.0.0.1:1", []string{"203.0.113.7"}, "127.0.0.1:1"},
		"a proxy":                   {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"203.0.113.7"}, "203.0.113.7"},
		"a proxy without a header":  {[]*net.IPNet{balancers}, "10.0.0.5:1", nil, "10.0.0.5:1"},
		"a caller that forges a header": {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"192.0.2.1, 203.0.113.7"},
			"203.0.113.7"},
		"a caller that forges a separate line": {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"192.0.2.1", "203.0.113.7"},
			"203.0.113.7"},
		"a caller that forges a proxy": {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"10.0.0.9, 203.0.113.7"}, "203.0.113.7"},
		"two proxies": {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"192.0.2.1, 203.0.113.7, 10.0.0.6"},
			"203.0.113.7"},
		"a header that is no address": {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"<script>"}, "10.0.0.5:1"},
		"a proxy with an IPv6 address": {[]*net.IPNet{balancers, six}, "[2001:db8::1]:1", []string{"2001:db8:1::7"},
			"2001:db8:1::7"},
		"an IPv6 address outside of the proxies": {[]*net.IPNet{six}, "[2001:db8:1::1]:1", []string{"203.0.113.7"}, "[2001:db8:1::1]:1"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t, func(config *httpapi.Config) { config.TrustedProxies = c.proxies })
			request := httptest.NewRequest(http.MethodGet, "/api/v1/admin/vehicles", nil)
			request.RemoteAddr = c.from
			for _, line := range c.forwarded {
				request.Header.Add("X-Forwarded-For", line)
			}
			a.handler.ServeHTTP(httptest.NewRecorder(), request)
			var line struct{ Remote, Proxy string }
			require.NoError(t, json.Unmarshal([]byte(a.log.String()), &line))
			wantProxy := c.from
			if c.want == c.from {
				wantProxy = ""
			}
			same(t, line.Remote, c.want, "remote")
			same(t, line.Proxy, wantProxy, "proxy")
		})
	}
}

const appOrigin = "https://console.example.com"

func withOrigin(origin string) func(*http.Request) { return withHeader("Origin", origin) }

func preflight(a *api, origin string) *response {
	return a.do(http.MethodOptions, lock, anonymous, withOrigin(origin), withHeader("Access-Control-Request-Method", "POST"),
		withHeader("Access-Control-Request-Headers", "authorization,idempotency-key"))
}

func TestCORS_ClosedByDefault(t *testing.T) {
	a := newAPI(t)
	preflight(a, appOrigin).heads("Access-Control-Allow-Origin", "", "Access-Control-Allow-Headers", "")
	a.post(lock, withOrigin(appOrigin)).wants(200, "").heads("Access-Control-Allow-Origin", "", "Vary", "")
}

func TestCORS_AllowsOnlyConfiguredOrigins(t *testing.T) {
	a := newAPI(t, func(c *httpapi.Config) { c.CORSOrigins = []string{appOrigin, "http://localhost:5173"} })
	for _, origin := range []string{appOrigin, "http://localhost:5173"} {
		r := preflight(a, origin)
		r.heads("Access-Control-Allow-Origin", origin, "Access-Control-Allow-Credentials", "")
		r.answers(204)
		same(t, r.header.Get("Allow"), "", "preflight of %s: Allow", origin)
		for _, name := range []string{"Authorization", "Content-Type", "X-Agency-Signature", "Idempotency-Key", "Prefer", "Last-Event-ID",
			"If-Match", "If-None-Match"} {
			if !strings.Contains(r.header.Get("Access-Control-Allow-Headers"), name) {
				t.Errorf("the header %s is not allowed", name)
			}
		}
		for _, method := range []string{"GET", "POST", "PUT", "DELETE"} {
			if !strings.Contains(r.header.Get("Access-Control-Allow-Methods"), method) {
				t.Errorf("the method %s is not allowed", method)
			}
		}
		// Error responses must be readable, too.
		for status, change := range map[int]func(*http.Request){200: func(*http.Request) {}, 401: anonymous} {
			r := a.post(lock, withOrigin(origin), change)
			r.heads("Access-Control-Allow-Origin", origin, "Vary", "Origin")
			r.answers(status)
			for _, name := range []string{"X-Request-ID", "RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "Retry-After",
				"Location", "Idempotency-Replayed", "Preference-Applied", "ETag"} {
				if !strings.Contains(strings.ToLower(r.header.Get("Access-Control-Expose-Headers")), strings.ToLower(name)) {
					t.Errorf("the header %s is not exposed", name)
				}
			}
		}
	}
	for _, origin := range []string{"https://example.com", appOrigin + ".evil.example", "http://console.example.com",
		appOrigin + ":8443", "https://CONSOLE.example.com", "null", ""} {
		preflight(a, origin).heads("Access-Control-Allow-Origin", "", "Access-Control-Allow-Headers", "")
		a.post(lock, withOrigin(origin)).wants(200, "").heads("Access-Control-Allow-Origin", "")
	}
	// Not a preflight request.
	a.do(http.MethodOptions, lock, anonymous, withOrigin(appOrigin)).heads("Access-Control-Allow-Origin", "")
	a.wantsEntries()
	same(t, a.controller.count(), 2+7, "orders")
}
