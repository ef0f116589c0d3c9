package devstack_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
)

// eachServer runs a test for each server that runs as a child process.
func eachServer(t *testing.T, test func(t *testing.T, server string)) {
	for _, server := range childServers {
		t.Run(server, func(t *testing.T) {
			devstack.NeedServer(t, server)
			test(t, server)
		})
	}
}

func mustStart(t *testing.T, server string) (childServer, string) {
	t.Helper()
	dir := t.TempDir()
	cleanPostgres(t, dir)
	s, url, err := startServer(server, dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	require.NoError(t, ask(url, patience), "the server does not respond")
	return s, url
}

func TestServer_IsPausedKilledRestartedAndClosed(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, server string) {
		s, url := mustStart(t, server)
		require.NoError(t, s.Pause())
		if !listens(t, url) {
			t.Error("the port of a paused server is closed, want it open and silent")
		}
		if err := ask(url, 300*time.Millisecond); err == nil {
			t.Error("a paused server responded")
		}
		require.NoError(t, s.Resume())
		assert.NoError(t, ask(url, patience), "after Resume")

		require.NoError(t, s.Kill())
		if listens(t, url) {
			t.Error("the port is still open after Kill returned")
		}
		if err := s.Kill(); err == nil {
			t.Error("a second Kill returned no error")
		}
		require.NoError(t, s.Restart())
		assert.NoError(t, ask(url, patience), "after Restart, at the same port")
		require.NoError(t, s.Restart(), "restart of a running server")
		assert.NoError(t, ask(url, patience), "after the second Restart")

		require.NoError(t, s.Pause())
		for range 2 {
			require.NoError(t, s.Close())
			if listens(t, url) {
				t.Error("the port is still open after Close of a paused server returned")
			}
		}
		if err := s.Restart(); err == nil {
			t.Error("a closed server was restarted")
		}
	})
}

func TestServer_EndsWithItsKilledParent(t *testing.T) {
	t.Parallel()
	eachServer(t, func(t *testing.T, server string) {
		dir := t.TempDir()
		cleanPostgres(t, dir)
		parent, url := startInAnotherProcess(t, server, dir)
		require.NoError(t, ask(url, patience), "the server does not respond")
		require.NoError(t, parent.Process.Kill())
		_ = parent.Wait()
		eventually(t, "the server to end", func() bool { return !listens(t, url) })
	})
}

// startInAnotherProcess runs this test binary as the parent of a server.
func startInAnotherProcess(t *testing.T, server, dir string) (parent *exec.Cmd, url string) {
	t.Helper()
	parent = exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), orphanVariable+"="+server, dirVariable+"="+dir)
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	t.Cleanup(func() {
		_ = parent.Process.Kill()
		_ = parent.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "://") {
		t.Fatalf("the other process printed %q (%v), want a URL", line, err)
	}
	return parent, strings.TrimSpace(line)
}
