package devstack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
)

// Miniredis is a Redis in this process.
type Miniredis struct{ server *miniredis.Miniredis }

// StartMiniredis listens on addr, such as 127.0.0.1:0 for a free port. The error for an address in
// use is a syscall.EADDRINUSE.
func StartMiniredis(addr string) (*Miniredis, error) {
	server := miniredis.NewMiniRedis()
	if err := server.StartAddr(addr); err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	// Without this, keys expire only when a test moves the clock by hand.
	server.ClockTTL(true)
	return &Miniredis{server}, nil
}

// URL returns the URL for clients.
func (m *Miniredis) URL() string { return redisURL(m.server.Addr()) }

// SetTime stops its clock at a time.
func (m *Miniredis) SetTime(t time.Time) { m.server.SetTime(t) }

// Close disconnects every client. Its data are lost.
func (m *Miniredis) Close() error {
	m.server.Close()
	return nil
}

// Redis is a redis-server on 127.0.0.1 without persistence. It can be frozen, killed and restarted.
type Redis struct {
	*child
	port    int
	secured *ServerTLS // nil: without TLS
}

// StartRedis returns when the server serves, with TLS alone where secured is not nil, and with
// further settings. It needs redis-server to be installed; Available says how. Its working folder
// is dir.
func StartRedis(dir string, secured *ServerTLS, more ...string) (*Redis, error) {
	program, dir, err := redisIn(dir)
	if err != nil {
		return nil, err
	}
	return onFreePorts(1, func(ports []int) (*Redis, error) { return startRedisOn(program, dir, ports[0], secured, more...) })
}

// redisIn returns the program, and the working folder, which it creates.
func redisIn(dir string) (program, absolute string, err error) {
	if program, err = findProgram(RedisServer); err != nil {
		return "", "", err
	}
	if absolute, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(absolute, 0o700)
	}
	return program, absolute, err
}

func startRedisOn(program, dir string, port int, secured *ServerTLS, more ...string) (*Redis, error) {
	settings := append(redisListener(port, secured), "--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no",
		"--repl-diskless-sync-delay", "0") // a replica of a test need not wait for others
	c, err := startChild(context.Background(), childConfig{
		name: "redis-server",
		command: func() (*exec.Cmd, error) {
			return exec.Command(program, append(settings, more...)...), nil
		},
		serving: "Ready to accept connections",
	})
	return &Redis{child: c, port: port, secured: secured}, err
}

// redisListener returns the settings of a server or Sentinel that listens on a port, with TLS for
// clients, replicas and other nodes where it is asked for.
func redisListener(port int, secured *ServerTLS) []string {
	listener := []string{"--bind", "127.0.0.1"}
	if secured == nil {
		return append(listener, "--port", strconv.Itoa(port))
	}
	return append(
		listener, "--port", "0", "--tls-port", strconv.Itoa(port), "--tls-cert-file", secured.CertFile,
		"--tls-key-file", secured.KeyFile, "--tls-ca-cert-file", secured.CAFile, "--tls-auth-clients", "yes",
		"--tls-replication", "yes", "--tls-cluster", "yes",
	)
}

// cli gives one server a command.
func (r *Redis) cli(args ...string) (string, error) { return redisCLI(r.port, r.secured, args...) }

func redisCLI(port int, secured *ServerTLS, args ...string) (string, error) {
	options := []string{"-h", "127.0.0.1", "-p", strconv.Itoa(port)}
	if secured != nil {
		options = append(options, "--tls", "--cacert", secured.CAFile, "--cert", secured.CertFile, "--key", secured.KeyFile)
	}
	out, err := exec.Command("redis-cli", append(options, args...)...).Output()
	text := string(out)
	if err == nil && (strings.HasPrefix(text, "ERR") || strings.HasPrefix(text, "(error)")) {
		err = errors.New(strings.TrimSpace(text))
	}
	if err != nil {
		return "", fmt.Errorf("redis-cli %s: %w", strings.Join(args, " "), err)
	}
	return text, nil
}

// IsMaster reports whether the server takes writes.
func (r *Redis) IsMaster() bool {
	role, err := r.cli("role")
	return err == nil && strings.HasPrefix(role, "master")
}

// hasReplica returns nil if a replica of the server is connected and has its data.
func (r *Redis) hasReplica() error {
	info, err := r.cli("info", "replication")
	if err == nil && !strings.Contains(info, "state=online") {
		err = errors.New(info)
	}
	return err
}

// URL returns the URL for clients.
func (r *Redis) URL() string { return redisScheme(r.secured) + r.address() + "/0" }

func (r *Redis) address() string { return fmt.Sprintf("127.0.0.1:%d", r.port) }

func redisScheme(secured *ServerTLS) string {
	if secured != nil {
		return "rediss://"
	}
	return "redis://"
}

func redisURL(addr string) string { return redisScheme(nil) + addr + "/0" }
