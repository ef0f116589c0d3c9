package haproxy_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// HAProxy itself accepts the configuration without a warning.
func TestConf_IsAcceptedByHAProxyWithoutAWarning(t *testing.T) {
	dir, authority, public := newFiles(t, "fleet")
	config := devstack.HAProxyConfig{
		Dir: dir, Public: public, CAFile: authority.CAFile,
		Backends: []devstack.Backend{
			{URL: "https://127.0.0.1:1", Health: "http://127.0.0.1:2"},
			{URL: "https://127.0.0.1:3", Health: "http://127.0.0.1:4"},
		},
	}
	file, err := config.WriteFiles(443)
	require.NoError(t, err)
	accepted(t, file)
}

func TestMQTTConf_IsAcceptedByHAProxyWithoutAWarning(t *testing.T) {
	dir, authority, public := newFiles(t, "mqtt")
	config := devstack.HAProxyConfig{
		Dir: dir, Public: public, CAFile: authority.CAFile, Shards: []string{"127.0.0.1:1", "127.0.0.1:2"},
	}
	file, err := config.WriteFiles(8883)
	require.NoError(t, err)
	accepted(t, file)
}

// newFiles returns a folder with an authority and the certificate of a name. It fails the test
// where there is no HAProxy.
func newFiles(t *testing.T, name string) (dir string, authority *devstack.Authority, public devstack.KeyPair) {
	t.Helper()
	devstack.NeedServer(t, devstack.HAProxyServer)
	dir = t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "authority"))
	require.NoError(t, err)
	public, err = authority.Issue(name)
	require.NoError(t, err)
	return dir, authority, public
}

func program() string {
	if path, err := exec.LookPath("haproxy"); err == nil {
		return path
	}
	return "/usr/sbin/haproxy"
}

// accepted validates a configuration with the real HAProxy.
func accepted(t *testing.T, file string) {
	t.Helper()
	said, err := exec.Command(program(), "-c", "-f", file).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "valid") || strings.Contains(string(said), "WARNING") {
		t.Errorf("haproxy -c: %v: %s", err, said)
	}
}

// The query of a sign-in has a code, and those of lists have names of people.
func TestConf_LogsNoQuery(t *testing.T) {
	dir, authority, public := newFiles(t, "fleet")
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	file, err := devstack.HAProxyConfig{
		Dir: dir, Public: public, CAFile: authority.CAFile,
		Backends: []devstack.Backend{{URL: "https://127.0.0.1:1", Health: "http://127.0.0.1:2"}},
	}.WriteFiles(address.Port)
	require.NoError(t, err)
	var log bytes.Buffer
	balancer := exec.Command(program(), "-db", "-f", file)
	balancer.Stdout = &log
	require.NoError(t, balancer.Start())
	client := http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	} //nolint:gosec // the balancer of this test
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		response, err := client.Get("https://" + address.String() + "/auth/callback?code=secret-code&state=s")
		if err == nil {
			_ = response.Body.Close() // 503: there is no instance
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	_ = balancer.Process.Signal(syscall.SIGUSR1) // it ends when it has answered
	_ = balancer.Wait()
	if said := log.String(); !strings.Contains(said, `"GET /auth/callback HTTP/`) || strings.Contains(said, "secret-code") {
		t.Errorf("logged:\n%s\nwant the path without its query", said)
	}
}

// While instances of two versions serve, a browser can load the console's pages, whose parts have
// other names in each version.
func TestConf_ABrowserGetsTheConsoleFromOneInstance(t *testing.T) {
	dir, authority, public := newFiles(t, "fleet")
	pair, err := tls.LoadX509KeyPair(public.CertFile, public.KeyFile)
	require.NoError(t, err)
	config := devstack.HAProxyConfig{Dir: dir, Public: public, CAFile: authority.CAFile}
	var served [2]atomic.Int64
	for i := range served {
		instance := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served[i].Add(1) }))
		instance.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		instance.StartTLS()
		t.Cleanup(instance.Close)
		health := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(health.Close)
		config.Backends = append(config.Backends, devstack.Backend{URL: instance.URL, Health: health.URL})
	}
	balancer, err := devstack.StartHAProxy(config)
	require.NoError(t, err)
	t.Cleanup(func() { _ = balancer.Close() })
	client := http.Client{Transport: &http.Transport{TLSClientConfig: authority.Trusted(), DisableKeepAlives: true}}
	by := func(path string) (first, second int64) {
		was := [2]int64{served[0].Load(), served[1].Load()}
		for range 10 {
			response, err := client.Get(balancer.URL() + path)
			require.NoError(t, err)
			_ = response.Body.Close()
		}
		return served[0].Load() - was[0], served[1].Load() - was[1]
	}
	if a, b := by("/console/assets/Fleet.js"); a != 0 && b != 0 || a+b != 10 {
		t.Errorf("the instances served %d and %d of 10 parts of the console", a, b)
	}
	if a, b := by("/api/v1/openapi.json"); a == 0 || b == 0 {
		t.Errorf("the instances served %d and %d of 10 calls", a, b)
	}
}
