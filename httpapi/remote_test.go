package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"motorpool/httpapi"
)

func TestRemoteAddress_IsTakenFromTrustedProxiesOnly(t *testing.T) {
	_, balancers, err := net.ParseCIDR("10.0.0.0/24")
	if err != nil {
		t.Fatal(err)
	}
	_, six, err := net.ParseCIDR("2001:db8::/64")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		proxies   []*net.IPNet
		from      string
		forwarded []string
		want      string
	}{
		"no proxy is trusted":                    {nil, "10.0.0.5:1", []string{"203.0.113.7"}, "10.0.0.5:1"},
		"a caller that is no proxy":              {[]*net.IPNet{balancers}, "198.51.100.9:1", []string{"203.0.113.7"}, "198.51.100.9:1"},
		"a caller on loopback":                   {[]*net.IPNet{balancers}, "127.0.0.1:1", []string{"203.0.113.7"}, "127.0.0.1:1"},
		"a proxy":                                {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"203.0.113.7"}, "203.0.113.7"},
		"a proxy without a header":               {[]*net.IPNet{balancers}, "10.0.0.5:1", nil, "10.0.0.5:1"},
		"a caller that forges a header":          {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"192.0.2.1, 203.0.113.7"}, "203.0.113.7"},
		"a caller that forges a separate line":   {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"192.0.2.1", "203.0.113.7"}, "203.0.113.7"},
		"a caller that forges a proxy":           {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"10.0.0.9, 203.0.113.7"}, "203.0.113.7"},
		"two proxies":                            {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"192.0.2.1, 203.0.113.7, 10.0.0.6"}, "203.0.113.7"},
		"a header that is no address":            {[]*net.IPNet{balancers}, "10.0.0.5:1", []string{"<script>"}, "10.0.0.5:1"},
		"a proxy with an IPv6 address":           {[]*net.IPNet{balancers, six}, "[2001:db8::1]:1", []string{"2001:db8:1::7"}, "2001:db8:1::7"},
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
			if err := json.Unmarshal([]byte(a.log.String()), &line); err != nil {
				t.Fatal(err)
			}
			wantProxy := c.from
			if c.want == c.from {
				wantProxy = ""
			}
			if line.Remote != c.want || line.Proxy != wantProxy {
				t.Errorf("logged %+v, want %s by proxy %q", line, c.want, wantProxy)
			}
		})
	}
}

// The request limit is per token, also if a caller forges another address with each request, and
// the audit log names the token's subject.
func TestRemoteAddress_DoesNotAffectLimitsOrTheAuditLog(t *testing.T) {
	a, _ := limitedAPI(t, 0, 3)
	for n := range 5 {
		r := a.post(lock, func(r *http.Request) { r.Header.Set("X-Forwarded-For", fmt.Sprintf("203.0.113.%d", n)) })
		same(t, r.status == http.StatusTooManyRequests, n >= 3, "request %d: status %d", n+1, r.status)
	}
	if strings.Contains(a.log.String(), "203.0.113.") {
		t.Errorf("a forged address is in the log: %s", a.log)
	}
}
