package console_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"motorpool/cmd/dev/folder"
	"motorpool/internal/require"
	"motorpool/lab/program"
	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
)

var dev string // the program that make dev runs

func TestMain(m *testing.M) {
	os.Exit(program.Main("motorpool/cmd/dev", &dev, func() int {
		defer storetest.Stop()
		return m.Run()
	}))
}

// live is a world of make dev that runs for a test.
type live struct {
	*testing.T
	env map[string]string
}

// begin starts a world on free ports, with a database of the Postgres that all these tests share,
// and waits until it is ready.
func begin(t *testing.T, args ...string) *live {
	t.Helper()
	devstack.NeedServer(t, devstack.PostgresServer)
	dir := t.TempDir()
	const free = "127.0.0.1:0"
	process := exec.Command(dev, append([]string{
		"--http", free, "--internal", free, "--mqtt", free, "--mqtt-service", free, "--dir", dir, "--log-level", "warn",
	}, args...)...)
	process.Env = append(os.Environ(), "DATABASE_URL="+storetest.NewDatabase(t))
	var said bytes.Buffer
	process.Stdout, process.Stderr = &said, t.Output()
	require.NoError(t, process.Start())
	ended := make(chan struct{})
	end := sync.OnceValue(process.Wait)
	go func() {
		_ = end() // the cleanup has the error, too
		close(ended)
	}()
	t.Cleanup(func() {
		_ = process.Process.Signal(syscall.SIGTERM) // it has ended, or will
		if err := end(); err != nil {
			t.Errorf("the world ended with the error %v", err)
		}
	})
	for deadline := time.Now().Add(90 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		if env := folder.ReadEnv(filepath.Join(dir, "env")); env != nil {
			return &live{t, env}
		}
		select {
		case <-ended:
			t.Fatalf("the world ended before it was ready:\n%s", said.String())
		default:
		}
		if time.Now().After(deadline) {
			require.Late(t, "the world is not ready after 90 s")
		}
	}
}

// isLocked returns telemetry.is_locked of vehicle 1; nil: not known.
func (l *live) isLocked() any {
	l.Helper()
	request, err := http.NewRequest(http.MethodGet, l.env["BASE_URL"]+"/api/v1/admin/vehicles/1/status", nil)
	require.NoError(l, err)
	request.Header.Set("Authorization", "Bearer "+l.env["ADMIN_TOKEN"])
	response, err := http.DefaultClient.Do(request)
	require.NoError(l, err)
	defer response.Body.Close()
	var status struct {
		Data struct{ Telemetry map[string]any }
	}
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil || response.StatusCode != http.StatusOK {
		l.Fatal(fmt.Errorf("status of vehicle 1: %d %w", response.StatusCode, err))
	}
	return status.Data.Telemetry["is_locked"]
}
