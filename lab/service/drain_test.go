package service_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/internal/assert"
	"motorpool/simulator/devstack"
)

// One of two instances behind a load balancer stops under load: no request fails.
func TestDrain_BehindALoadBalancerNoRequestFails(t *testing.T) {
	devstack.NeedServer(t, devstack.HAProxyServer)
	const vehicles, calls = 8, 2000
	s := embeddedStack(t, vehicles)
	s.drive(nil, healthy)
	authority, err := devstack.NewAuthority(filepath.Join(s.dir, "authority"))
	s.must(err)
	public, err := authority.Issue("public")
	s.must(err)
	settings := func(c *app.Config) {
		c.HTTPCert, c.HTTPKey = public.CertFile, public.KeyFile
		c.Health, c.Drain, c.VehicleRate, c.AdminRate = "127.0.0.1:0", 8*time.Second, 0, 0
	}
	instances := []*instance{s.serve(settings), s.serve(settings, func(c *app.Config) { c.Drain = 0 })}
	var backends []devstack.Backend
	for _, i := range instances {
		backends = append(backends, devstack.Backend{URL: i.base, Health: i.health})
	}
	proxy, err := devstack.StartHAProxy(devstack.HAProxyConfig{
		Dir: filepath.Join(s.dir, "haproxy"), Public: public, CAFile: authority.CAFile, Backends: backends,
	})
	s.must(err)
	t.Cleanup(func() { _ = proxy.Close() })
	transport := &http.Transport{TLSClientConfig: authority.Trusted(), MaxIdleConnsPerHost: vehicles}
	t.Cleanup(transport.CloseIdleConnections)
	s.http = &http.Client{Transport: transport}
	balanced := *instances[1]
	balanced.base = proxy.URL()

	stopped := make(chan struct{})
	var made atomic.Int64
	var callers sync.WaitGroup
	for n := range vehicles {
		callers.Go(func() {
			for { // until the instance has ended and the time has passed
				select {
				case <-stopped:
					if made.Load() >= calls {
						return
					}
				default:
				}
				call := made.Add(1)
				r, err := balanced.call(n, call)
				switch {
				case err != nil:
					t.Errorf("call %d: %v", call, err)
				case r.starved(): // the service responded
				case r.status != http.StatusOK:
					t.Errorf("call %d: status %d %s", call, r.status, r.Error.Code)
				}
			}
		})
	}
	s.eventually(time.Minute, "calls are made", func() bool { return made.Load() > calls/10 })
	instances[0].stop()
	close(stopped)
	callers.Wait()
	t.Logf("%d calls", made.Load())
}

// call locks a vehicle, or reads its state. An error means that the service did not respond.
func (i *instance) call(n int, number int64) (r reply, err error) {
	method, path := http.MethodPost, fmt.Sprintf("/api/v1/admin/vehicles/%d/control/lock", n+1)
	if number%4 != 0 {
		method, path = http.MethodGet, fmt.Sprintf("/api/v1/admin/vehicles/%d/status", n+1)
	}
	request, err := http.NewRequest(method, i.base+path, nil)
	if err != nil {
		return r, err
	}
	request.Header.Set("Authorization", "Bearer "+i.admin)
	response, err := cmp.Or(i.http, http.DefaultClient).Do(request)
	if err != nil {
		return r, err
	}
	defer response.Body.Close()
	r.status = response.StatusCode
	if err := json.NewDecoder(response.Body).Decode(&r); err != nil {
		return r, fmt.Errorf("status %d, not a response of the service: %w", r.status, err)
	}
	return r, nil
}

// pipelined sends requests together, and returns the status of each response; 0: none.
func (i *instance) pipelined(requests int, path string) []int {
	i.Helper()
	c, err := net.Dial("tcp", host(i.base))
	i.must(err)
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	_, err = io.WriteString(c, strings.Repeat("GET "+path+" HTTP/1.1\r\nHost: test\r\n\r\n", requests))
	i.must(err)
	statuses, read := make([]int, requests), bufio.NewReader(c)
	for n := range statuses {
		response, err := http.ReadResponse(read, nil)
		if err != nil {
			i.Logf("pipelined: %v", err)
			break
		}
		_, err = io.Copy(io.Discard, response.Body)
		_ = response.Body.Close()
		i.must(err)
		statuses[n] = response.StatusCode
	}
	return statuses
}

func host(url string) string {
	_, address, _ := strings.Cut(url, "://")
	return address
}

// An instance that drains is not ready but alive, and responds; near the end it closes idle
// connections.
func TestDrain_ServesRequestsAndIsNotReady(t *testing.T) {
	s := embeddedStack(t, 1)
	const drain = 6 * time.Second
	i := s.serve(func(c *app.Config) { c.Health, c.Drain = "127.0.0.1:0", drain })
	s.eventually(drain, "ready before the drain", func() bool {
		status, _ := i.fetch(i.health + "/readyz")
		return status == http.StatusOK
	})
	for _, path := range []string{"/metrics", "/units.jwks", "/debug/pprof/"} {
		if status, _ := i.fetch(i.health + path); status != http.StatusNotFound {
			t.Errorf("%s on the health listener: %d, want 404", path, status)
		}
	}
	for _, base := range []string{i.internal, i.base} { // profiles are off by default
		if status, _ := i.fetch(base + "/debug/pprof/"); status != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", base, status)
		}
	}
	begin := time.Now()
	done := make(chan struct{})
	go func() { i.stop(); close(done) }()
	for _, base := range []string{i.health, i.internal} {
		s.eventually(drain, "not ready: "+base, func() bool {
			status, body := i.fetch(base + "/readyz")
			return status == http.StatusServiceUnavailable && strings.Contains(string(body), `"reason":"draining"`)
		})
		if status, _ := i.fetch(base + "/healthz"); status != http.StatusOK {
			t.Errorf("healthz while draining is %d, want 200", status)
		}
	}
	assert.Equal(t, i.get("/api/v1/admin/vehicles", nil).status, http.StatusOK, "a request while draining")
	for n, status := range i.pipelined(2, "/openapi.json") {
		assert.Equal(t, status, http.StatusOK, "pipelined request %d while draining", n+1)
	}
	s.eventually(drain, "connections are ended", func() bool {
		response, err := http.Get(i.base + "/openapi.json")
		s.must(err)
		defer response.Body.Close()
		return response.Close
	})
	<-done
	if took := time.Since(begin); took < drain {
		t.Errorf("the instance stopped after %v, before the end of the drain", took)
	}
}
