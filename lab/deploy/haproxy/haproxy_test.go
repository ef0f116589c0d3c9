package haproxy_test

import (
	"bytes"
	"crypto/tls"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

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
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, file)
}

func TestMQTTConf_IsAcceptedByHAProxyWithoutAWarning(t *testing.T) {
	dir, authority, public := newFiles(t, "mqtt")
	config := devstack.MQTTBalancerConfig{
		Dir: dir, Public: public, CAFile: authority.CAFile, Shards: []string{"127.0.0.1:1", "127.0.0.1:2"},
	}
	file, err := config.WriteFiles(8883)
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, file)
}

// newFiles returns a folder with an authority and the certificate of a name. It fails the test
// where there is no HAProxy.
func newFiles(t *testing.T, name string) (dir string, authority *devstack.Authority, public devstack.KeyPair) {
	t.Helper()
	devstack.NeedServer(t, devstack.HAProxyServer)
	dir = t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "authority"))
	if err != nil {
		t.Fatal(err)
	}
	public, err = authority.Issue(name)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().(*net.TCPAddr)
	_ = free.Close()
	file, err := devstack.HAProxyConfig{
		Dir: dir, Public: public, CAFile: authority.CAFile,
		Backends: []devstack.Backend{{URL: "https://127.0.0.1:1", Health: "http://127.0.0.1:2"}},
	}.WriteFiles(address.Port)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	balancer := exec.Command(program(), "-db", "-f", file)
	balancer.Stdout = &log
	if err := balancer.Start(); err != nil {
		t.Fatal(err)
	}
	client := http.Client{
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
	} //nolint:gosec // the balancer of this test
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
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
