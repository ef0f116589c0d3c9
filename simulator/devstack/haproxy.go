package devstack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"motorpool/deploy/haproxy"
)

// Backend is an instance behind a load balancer.
type Backend struct {
	URL    string // of its public API, with TLS
	Health string // URL of its /readyz
}

// HAProxyConfig says what a load balancer is in front of.
type HAProxyConfig struct {
	Dir      string  // where its configuration lies; created if need be
	Public   KeyPair // that it shows to callers
	CAFile   string  // authorities that sign the certificates of the backends
	Backends []Backend
}

// HAProxy is a load balancer on 127.0.0.1 with the production configuration.
type HAProxy struct {
	*child
	port int
}

// StartHAProxy returns when the load balancer accepts connections. It needs haproxy to be
// installed; Available says how.
func StartHAProxy(c HAProxyConfig) (*HAProxy, error) {
	program, err := findProgram(HAProxyServer)
	if err != nil {
		return nil, err
	}
	return onFreePorts(1, func(ports []int) (*HAProxy, error) {
		file, err := c.WriteFiles(ports[0])
		if err != nil {
			return nil, err
		}
		addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
		child, err := startChild(context.Background(), childConfig{
			name:    "haproxy",
			command: func() (*exec.Cmd, error) { return exec.Command(program, "-db", "-f", file), nil },
			ready: func(context.Context) bool {
				conn, err := net.Dial("tcp", addr)
				return err == nil && conn.Close() == nil
			},
		})
		return &HAProxy{child, ports[0]}, err
	})
}

// URL is where clients connect.
func (h *HAProxy) URL() string { return fmt.Sprintf("https://127.0.0.1:%d", h.port) }

// WriteFiles writes the production configuration with this machine's addresses and paths, and
// returns its path.
func (c HAProxyConfig) WriteFiles(port int) (string, error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return "", fmt.Errorf("configure haproxy: %w", err)
	}
	pair, err := readFiles(c.Public.CertFile, c.Public.KeyFile)
	if err != nil {
		return "", fmt.Errorf("configure haproxy: %w", err)
	}
	public, file := filepath.Join(c.Dir, "public.pem"), filepath.Join(c.Dir, "haproxy.cfg")
	conf, err := c.configuration(port, public)
	if err != nil {
		return "", fmt.Errorf("configure haproxy: %w", err)
	}
	return file, errors.Join(os.WriteFile(public, pair, 0o600), os.WriteFile(file, []byte(conf), 0o600))
}

func (c HAProxyConfig) configuration(port int, public string) (string, error) {
	var servers strings.Builder
	for i, b := range c.Backends {
		public, errPublic := url.Parse(b.URL)
		health, errHealth := url.Parse(b.Health)
		if err := errors.Join(errPublic, errHealth); err != nil {
			return "", err
		}
		fmt.Fprintf(&servers, "  server instance-%d %s port %s\n", i+1, public.Host, health.Port())
	}
	return replaced("haproxy.cfg", haproxy.Conf, [][2]string{
		{"bind :443 ", fmt.Sprintf("bind 127.0.0.1:%d ", port)},
		{"/etc/haproxy/tls/fleet.pem", public},
		{"/etc/haproxy/tls/motorpool-ca.crt", c.CAFile},
		{"  server a 10.0.0.11:8080\n  server b 10.0.0.12:8080\n", servers.String()},
	})
}

// replaced changes a production configuration for this machine. What is to be changed must be
// there.
func replaced(name, conf string, changes [][2]string) (string, error) {
	for _, c := range changes {
		changed := strings.ReplaceAll(conf, c[0], c[1])
		if changed == conf {
			return "", fmt.Errorf("%s has no %q", name, strings.TrimSpace(c[0]))
		}
		conf = changed
	}
	return conf, nil
}

// readFiles returns files one after the other.
func readFiles(names ...string) ([]byte, error) {
	var all []byte
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		all = append(all, text...)
	}
	return all, nil
}
