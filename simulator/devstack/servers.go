// Package devstack runs the servers of a whole development world on this machine: an MQTT broker,
// Redis and PostgreSQL.
//
// There are up to two forms of each server, with the same methods (URLs, Close):
//
//	          in this process      as a child process
//	MQTT      StartMQTT            StartMosquitto
//	Redis     StartMiniredis       StartRedis
//	SQL                            StartPostgres
//
// The embedded broker enforces the access files of the production broker, so test results for one
// hold for the other; package mosquitto attacks both. Outages are simulated by freezing, killing
// and restarting children, on the same port. All listen on loopback only, and none outlives its
// parent: on Linux, the kernel ends a child whose parent was killed.
//
// The production service never links this package.
package devstack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// The names of the real servers, for Available and NeedServer.
const (
	MosquittoServer = "mosquitto"
	RedisServer     = "redis-server"
	PostgresServer  = "postgres"
	PgBouncerServer = "pgbouncer"
	HAProxyServer   = "haproxy"

	PrometheusServer   = "prometheus"
	AlertmanagerServer = "prometheus-alertmanager"

	// Browser is no server, but tests need it in the same way.
	Browser = "chromium"
)

// RequireServers is the environment variable that turns a skipped test into a failed one; "1" sets
// it.
const RequireServers = "REQUIRE_SERVERS"

// NotRunFile is the environment variable that names a file to which NeedServer adds a line for each
// test that did not run: go test itself says nothing of a skipped one.
const NotRunFile = "NOT_RUN_FILE"

// TB is what NeedServer needs of a *testing.T or *testing.B.
type TB interface {
	Helper()
	Name() string
	Skipf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// NeedServer skips the test if a real server is not installed. With REQUIRE_SERVERS=1 the test
// fails instead. Where the machine is busy, it first waits a while: a test that starts servers
// concurrently with many others makes all of them late.
func NeedServer(tb TB, server string) {
	tb.Helper()
	Need(tb, Available(server))
	awaitTurn(tb.Name())
}

// Need skips or fails the test, as NeedServer does, if err is set: something that the test needs is
// missing.
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

// Available returns nil if a real server is installed, else an error that says how to install it.
func Available(server string) error {
	if server == PostgresServer {
		_, err := findPostgres(anyMajor)
		return err
	}
	_, err := findProgram(server)
	return err
}

// findProgram searches PATH, and the usual folders of servers, which a user's PATH often lacks. For
// its error: Debian's packages have the names of the programs.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/local/sbin", "/opt/homebrew/sbin", "/opt/homebrew/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s is not installed (Debian: apt-get install %s)", name, name)
}

const (
	// busyPerCore is how many threads for each core may want to run when a test starts servers.
	// Half: cores idle while tests wait for each other; double: deadlines pass on slow machines.
	busyPerCore = 2
	// turnWithin is when a test starts at the latest.
	turnWithin = 10 * time.Second
	looks      = 5
	lookEvery  = 20 * time.Millisecond
)

var hadTurn sync.Map // names of tests

// awaitTurn returns when the machine has time for one more test with servers. Each test waits once.
func awaitTurn(test string) {
	if _, had := hadTurn.LoadOrStore(test, true); had {
		return
	}
	for begin := time.Now(); time.Since(begin) < turnWithin; {
		sum := 0
		for range looks {
			sum += running()
			time.Sleep(lookEvery)
		}
		if sum <= looks*busyPerCore*runtime.NumCPU() {
			return
		}
	}
}

// running returns how many threads run or want to run on this machine; 0: it is not known.
func running() (n int) {
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		var minute, five, fifteen string
		_, _ = fmt.Sscanf(string(text), "%s %s %s %d/", &minute, &five, &fifteen, &n)
	}
	return n
}
