package haproxy_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"motorpool/simulator/devstack"
)

// HAProxy itself accepts the configuration without a warning.
func TestConf_IsAcceptedByHAProxyWithoutAWarning(t *testing.T) {
	devstack.NeedServer(t, devstack.HAProxyServer)
	dir := t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "authority"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := authority.Issue("fleet")
	if err != nil {
		t.Fatal(err)
	}
	config := devstack.HAProxyConfig{
		Dir: dir, Public: public, CAFile: authority.CAFile,
		Backends: []devstack.Backend{{URL: "https://127.0.0.1:1", Health: "http://127.0.0.1:2"}, {URL: "https://127.0.0.1:3", Health: "http://127.0.0.1:4"}},
	}
	file, err := config.WriteFiles(443)
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, file)
}

func TestMQTTConf_IsAcceptedByHAProxyWithoutAWarning(t *testing.T) {
	devstack.NeedServer(t, devstack.HAProxyServer)
	dir := t.TempDir()
	authority, err := devstack.NewAuthority(filepath.Join(dir, "authority"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := authority.Issue("mqtt")
	if err != nil {
		t.Fatal(err)
	}
	config := devstack.MQTTBalancerConfig{Dir: dir, Public: public, CAFile: authority.CAFile, Shards: []string{"127.0.0.1:1", "127.0.0.1:2"}}
	file, err := config.WriteFiles(8883)
	if err != nil {
		t.Fatal(err)
	}
	accepted(t, file)
}

// accepted validates a configuration with the real HAProxy.
func accepted(t *testing.T, file string) {
	t.Helper()
	program, err := exec.LookPath("haproxy")
	if err != nil {
		program = "/usr/sbin/haproxy"
	}
	said, err := exec.Command(program, "-c", "-f", file).CombinedOutput()
	if err != nil || !strings.Contains(string(said), "valid") || strings.Contains(string(said), "WARNING") {
		t.Errorf("haproxy -c: %v: %s", err, said)
	}
}
