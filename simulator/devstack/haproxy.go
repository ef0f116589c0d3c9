package devstack

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Backend is an instance behind a load balancer.
type Backend struct {
	Addr   string // of its public API
	Health string // address of its /readyz
}

// HAProxy is a load balancer on 127.0.0.1 that asks /readyz of its backends every 200 ms, as
// docs/operating.md says.
type HAProxy struct {
	*child
	port int
}

// StartHAProxy returns when the load balancer accepts connections. It needs haproxy to be
// installed; Available says how.
func StartHAProxy(dir string, backends ...Backend) (*HAProxy, error) {
	program, err := findProgram(HAProxyServer)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start haproxy: %w", err)
	}
	return onFreePorts(1, func(ports []int) (*HAProxy, error) {
		file := filepath.Join(dir, "haproxy.cfg")
		if err := os.WriteFile(file, []byte(haproxyConf(ports[0], backends)), 0o600); err != nil {
			return nil, fmt.Errorf("configure haproxy: %w", err)
		}
		addr := fmt.Sprintf("127.0.0.1:%d", ports[0])
		c, err := startChild(context.Background(), childConfig{
			name:    "haproxy",
			command: func() (*exec.Cmd, error) { return exec.Command(program, "-db", "-f", file), nil },
			ready: func(context.Context) bool {
				conn, err := net.Dial("tcp", addr)
				return err == nil && conn.Close() == nil
			},
		})
		return &HAProxy{c, ports[0]}, err
	})
}

// URL is where clients connect.
func (h *HAProxy) URL() string { return fmt.Sprintf("http://127.0.0.1:%d", h.port) }

func haproxyConf(port int, backends []Backend) string {
	var conf strings.Builder
	fmt.Fprintf(&conf, `defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  timeout check 10s
frontend api
  bind 127.0.0.1:%d
  default_backend instances
backend instances
  option httpchk GET /readyz
  default-server check inter 200ms fall 4 rise 1
`, port)
	for i, b := range backends {
		_, health, _ := net.SplitHostPort(b.Health)
		fmt.Fprintf(&conf, "  server instance-%d %s port %s\n", i+1, b.Addr, health)
	}
	return conf.String()
}
