package main

import (
	"bufio"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"motorpool/internal/require"
)

// The service runs without any of its servers, and logs its start and its end.
func TestServe_LogsItsStartAndItsEnd(t *testing.T) {
	for _, end := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(end.String(), func(t *testing.T) { endsInOrder(t, end) })
	}
}

func endsInOrder(t *testing.T, end syscall.Signal) {
	// Else the service would ignore what these tests do under nohup.
	signal.Notify(make(chan os.Signal, 1), end)
	defer signal.Reset(end)
	dir := t.TempDir()
	private, err := output(t, "keys", "new")
	require.NoError(t, err)
	file := filepath.Join(dir, "signing.jwks")
	require.NoError(t, os.WriteFile(file, []byte(private), 0o600))
	public, err := output(t, "keys", "public", file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "tokens.jwks"), []byte(public), 0o600))
	self, err := os.Executable()
	require.NoError(t, err)
	service := exec.CommandContext(
		t.Context(), self, "serve", "--http", "127.0.0.1:0", "--internal", "127.0.0.1:0", "--health", "127.0.0.1:0",
		"--drain", "10ms", "--log-format", "text", "--database-url",
		"postgres://motorpool@127.0.0.1:1/motorpool?sslmode=disable", "--redis-url", "redis://127.0.0.1:1/0",
		"--mqtt-url", "tcp://127.0.0.1:1", "--signing-keys", file, "--token-keys", filepath.Join(dir, "tokens.jwks"),
	)
	service.Dir = dir
	stderr, err := service.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, service.Start())
	watch := time.AfterFunc(time.Minute, func() { _ = service.Process.Kill() })
	defer watch.Stop()
	var said []string
	for lines := bufio.NewScanner(stderr); lines.Scan(); {
		said = append(said, lines.Text())
		if strings.Contains(lines.Text(), "serving http=127.0.0.1:") {
			_ = service.Process.Signal(end)
		}
	}
	all := strings.Join(said, "\n")
	if err := service.Wait(); err != nil || !strings.HasSuffix(all, "msg=stopped") {
		t.Errorf("the service ended with %v and the log:\n%s", err, all)
	}
}
