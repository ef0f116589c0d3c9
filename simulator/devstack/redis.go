package devstack

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// URL is where clients connect.
func (m *Miniredis) URL() string { return redisURL(m.server.Addr()) }

// SetTime stops its clock at a time.
func (m *Miniredis) SetTime(t time.Time) { m.server.SetTime(t) }

// Close disconnects every client. What was stored is lost.
func (m *Miniredis) Close() error {
	m.server.Close()
	return nil
}

// Redis is a redis-server on 127.0.0.1 that forgets everything when it ends. It can be frozen,
// killed and restarted.
type Redis struct {
	*child
	port    int
	secured bool
}

// StartRedis returns when the server serves. It needs redis-server to be installed; Available says
// how. Its working folder is dir.
func StartRedis(dir string) (*Redis, error) {
	return startRedisIn(dir, func(program, dir string, port int) (*Redis, error) { return startRedisOn(program, dir, port) })
}

// StartRedisTLS is like StartRedis, with TLS alone.
func StartRedisTLS(dir string, t ServerTLS) (*Redis, error) {
	return startRedisIn(dir, func(program, dir string, port int) (*Redis, error) {
		r, err := startRedisOn(program, dir, 0, "--tls-port", strconv.Itoa(port), "--tls-cert-file", t.CertFile, "--tls-key-file", t.KeyFile,
			"--tls-ca-cert-file", t.CAFile, "--tls-auth-clients", "yes")
		r.port, r.secured = port, true
		return r, err
	})
}

func startRedisIn(dir string, start func(program, dir string, port int) (*Redis, error)) (*Redis, error) {
	program, err := findProgram(RedisServer)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	return onFreePorts(1, func(ports []int) (*Redis, error) { return start(program, dir, ports[0]) })
}

func startRedisOn(program, dir string, port int, more ...string) (*Redis, error) {
	c, err := startChild(context.Background(), childConfig{
		name: "redis-server",
		command: func() (*exec.Cmd, error) {
			return exec.Command(program, append([]string{"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", dir,
				"--save", "", "--appendonly", "no", "--daemonize", "no"}, more...)...), nil
		},
		serving: "Ready to accept connections",
	})
	return &Redis{child: c, port: port}, err
}

// URL is where clients connect.
func (r *Redis) URL() string {
	if r.secured {
		return fmt.Sprintf("rediss://127.0.0.1:%d/0", r.port)
	}
	return redisURL(fmt.Sprintf("127.0.0.1:%d", r.port))
}

func redisURL(addr string) string { return "redis://" + addr + "/0" }
