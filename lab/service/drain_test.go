package service_test

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/app"
	"motorpool/simulator/devstack"
)

// One of two instances behind a load balancer stops under load: no request fails. While it drains,
// it is not ready but alive, and responds; near the end it closes idle connections.
func TestDrain_BehindALoadBalancerNoRequestFails(t *testing.T) {
	devstack.NeedServer(t, devstack.HAProxyServer)
	const vehicles, calls, drain = 4, 400, 8 * time.Second
	s := embeddedStack(t, vehicles)
	s.drive(nil, healthy)
	authority, err := devstack.NewAuthority(filepath.Join(s.dir, "authority"))
	s.must(err)
	public, err := authority.Issue("public")
	s.must(err)
	settings := func(c *app.Config) {
		c.HTTPCert, c.HTTPKey = public.CertFile, public.KeyFile
		c.Health, c.Drain, c.VehicleRate, c.AdminRate = "127.0.0.1:0", drain, 0, 0
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
					t.Errorf("call %d: status %d %s", call, r.status, r.code())
				}
			}
		})
	}
	s.eventually(time.Minute, "calls are made", func() bool { return made.Load() > calls/10 })
	begin := time.Now()
	done := make(chan struct{})
	go func() { instances[0].stop(); close(done) }()
	instances[0].drains(drain)
	<-done
	if took := time.Since(begin); took < drain {
		t.Errorf("the instance stopped after %v, before the end of the drain", took)
	}
	close(stopped)
	callers.Wait()
	t.Logf("%d calls", made.Load())
}

// drains checks an instance that has begun to drain, which takes a time.
func (i *instance) drains(takes time.Duration) {
	i.Helper()
	for _, base := range []string{i.health, i.internal} {
		i.eventually(takes, "not ready: "+base, func() bool {
			status, body := i.fetch(base + "/readyz")
			return status == http.StatusServiceUnavailable && strings.Contains(string(body), `"reason":"draining"`)
		})
		if status, _ := i.fetch(base + "/healthz"); status != http.StatusOK {
			i.Errorf("healthz while draining is %d, want 200", status)
		}
	}
	for _, path := range []string{"/metrics", "/units.jwks", "/debug/pprof/"} {
		if status, _ := i.fetch(i.health + path); status != http.StatusNotFound {
			i.Errorf("%s on the health listener: %d, want 404", path, status)
		}
	}
	if status, _ := i.fetch(i.internal + "/debug/pprof/"); status != http.StatusNotFound {
		i.Errorf("profiles, which are off by default: %d, want 404", status)
	}
	i.eventually(takes, "connections are ended", func() bool {
		response, err := i.http.Get(i.base + "/openapi.json")
		i.must(err)
		defer response.Body.Close()
		return response.Close
	})
}

// call locks a vehicle, or reads its state.
func (i *instance) call(n int, number int64) (answer, error) {
	method, path := http.MethodPost, fmt.Sprintf("/api/v1/admin/vehicles/%d/control/lock", n+1)
	if number%4 != 0 {
		method, path = http.MethodGet, fmt.Sprintf("/api/v1/admin/vehicles/%d/status", n+1)
	}
	request, err := http.NewRequest(method, i.base+path, nil)
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Authorization", "Bearer "+i.admin)
	return i.try(request)
}

func host(url string) string {
	_, address, _ := strings.Cut(url, "://")
	return address
}
