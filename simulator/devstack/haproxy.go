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

// HAProxyConfig configures a load balancer in front of instances, or of MQTT brokers, the shards.
type HAProxyConfig struct {
	Dir      string    // where its configuration lies; created if need be
	Public   KeyPair   // that it shows to callers or units
	CAFile   string    // authorities that sign the certificates of what is behind it
	Backends []Backend // the instances
	Shards   []string  // addresses of the shards' listeners for units, with TLS
}

// HAProxy is a load balancer on 127.0.0.1 with a production configuration.
type HAProxy struct {
	*child
	scheme string
	port   int
}

// StartHAProxy starts the load balancer, and returns when it accepts connections. haproxy must be
// installed; the error of Available says how to install it.
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
		scheme := "https"
		if c.Shards != nil {
			scheme = "ssl"
		}
		return &HAProxy{child, scheme, ports[0]}, err
	})
}

// URL returns the URL for clients.
func (h *HAProxy) URL() string { return fmt.Sprintf("%s://127.0.0.1:%d", h.scheme, h.port) }

// WriteFiles writes the production configuration with this machine's addresses and paths, and
// returns its path.
func (c HAProxyConfig) WriteFiles(port int) (file string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("configure haproxy: %w", err)
		}
	}()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return "", err
	}
	pair, err := readFiles(c.Public.CertFile, c.Public.KeyFile)
	if err != nil {
		return "", err
	}
	// The certificate with its key in one file.
	both, file := filepath.Join(c.Dir, "public.pem"), filepath.Join(c.Dir, "haproxy.cfg")
	configuration := c.ofInstances
	if c.Shards != nil {
		configuration = c.ofShards
	}
	conf, err := configuration(port, both)
	if err != nil {
		return "", err
	}
	return file, errors.Join(os.WriteFile(both, pair, 0o600), os.WriteFile(file, []byte(conf), 0o600))
}

func (c HAProxyConfig) ofInstances(port int, public string) (string, error) {
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

func (c HAProxyConfig) ofShards(port int, public string) (string, error) {
	var servers strings.Builder
	for i, shard := range c.Shards {
		fmt.Fprintf(&servers, "  server shard-%d %s id %d\n", i+1, shard, i+1)
	}
	return replaced("mqtt.cfg", haproxy.MQTTConf, [][2]string{
		{"maxconn 200000", "maxconn 2000"},
		{"inspect-delay 10s", "inspect-delay 3s"}, // tests wait for it
		{"bind :8883 ", fmt.Sprintf("bind 127.0.0.1:%d ", port)},
		{"/etc/haproxy/tls/mqtt.pem", public},
		{"/etc/haproxy/tls/mosquitto-ca.crt", c.CAFile},
		{
			"  server shard-1 10.0.0.21:8883 id 1\n  server shard-2 10.0.0.22:8883 id 2\n  server shard-3 10.0.0.23:8883 id 3\n",
			servers.String(),
		},
	})
}

// replaced changes a production configuration for this machine. It fails if a text to change is
// missing.
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

// readFiles returns the contents of files, concatenated.
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
