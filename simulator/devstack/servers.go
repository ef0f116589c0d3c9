package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// The real servers, as Available and NeedServer know them.
const (
	MosquittoServer = "mosquitto"
	RedisServer     = "redis"
	PostgresServer  = "postgres"
	PgBouncerServer = "pgbouncer"
	HAProxyServer   = "haproxy"
)

// RequireServers is the environment variable that turns a skipped test into a failed one; "1" sets it.
const RequireServers = "REQUIRE_SERVERS"

// NotRunFile is the environment variable that names a file to which NeedServer adds a line for each test that did not run: go test
// itself says nothing of a skipped one.
const NotRunFile = "NOT_RUN_FILE"

// TB is what NeedServer needs of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Name() string
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// NeedServer skips the test if a real server is not installed, and says what did not run. With REQUIRE_SERVERS=1 it fails it.
// Need is the only place where that is decided.
func NeedServer(tb TB, server string) {
	tb.Helper()
	Need(tb, Available(server))
}

// Need does as NeedServer where something else that a test needs could not be had; nil: it could.
func Need(tb TB, err error) {
	tb.Helper()
	switch {
	case err == nil:
	case os.Getenv(RequireServers) == "1":
		tb.Fatalf("%v (%s=1 forbids to skip)", err, RequireServers)
	default:
		if err := noteNotRun(tb.Name(), err); err != nil {
			tb.Fatalf("note that %s did not run: %v", tb.Name(), err)
		}
		tb.Skipf("NOT RUN: %s: %v", tb.Name(), err)
	}
}

func noteNotRun(test string, why error) error {
	path := os.Getenv(NotRunFile)
	if path == "" {
		return nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s: %v\n", test, why)
	return errors.Join(err, file.Close())
}

// Available returns nil if a real server can be started from what lies on this machine, else an error that says how to get it.
func Available(server string) error {
	var err error
	switch server {
	case MosquittoServer:
		_, err = findMosquitto()
	case RedisServer:
		_, err = findRedis()
	case PostgresServer:
		_, err = findPostgres(anyMajor)
	case PgBouncerServer:
		_, err = findPgBouncer()
	case HAProxyServer:
		_, err = findHAProxy()
	default:
		err = fmt.Errorf("no server is called %q", server)
	}
	return err
}

func findMosquitto() (string, error) { return findProgram("mosquitto", "mosquitto") }

func findRedis() (string, error) { return findProgram("redis-server", "redis-server") }

func findPgBouncer() (string, error) { return findProgram("pgbouncer", "pgbouncer") }
func findHAProxy() (string, error)   { return findProgram("haproxy", "haproxy") }

// findProgram looks where servers lie, too: a user's PATH often lacks those folders.
func findProgram(name, debianPackage string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin", "/opt/homebrew/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed (Debian: apt-get install %s)", name, debianPackage)
}
