package main

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/cmd/chaos/money"
	"motorpool/cmd/internal/world"
	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
)

// TestMain makes the test binary act as the service for tests that need it as a process: the killed
// process is the code under test, with the race detector if the tests use it.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "serve" || os.Args[1] == "unit") {
		main()
		return
	}
	// The shell of a developer may have the variables of the README's quick start.
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "MOTORPOOL_") {
			_ = os.Unsetenv(name)
		}
	}
	code := m.Run()
	storetest.Stop()
	os.Exit(code)
}

// A round with thousands of bookings runs with: make chaos ARGS="--bookings 2000".
func TestEachChargeIsMadeOnceWhateverDies(t *testing.T) {
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer} {
		devstack.NeedServer(t, server)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var round money.Result
	if err := world.Run(t.Context(), dir, self, slog.New(slog.NewTextHandler(t.Output(), nil)), func(ctx context.Context, w *world.World) error {
		round, err = money.Round(ctx, w, money.Config{Seed: 5, Bookings: 60, Instances: 2, Duration: 8 * time.Second, Hurry: true})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	round.Write(t.Output())
	for _, violation := range round.Report.Violations {
		t.Error(violation)
	}
	if why := round.Worthless(); why != "" {
		t.Errorf("the round is not valid: %s", why)
	}
	for _, log := range instanceLogs(t, dir) {
		if !strings.Contains(log, "serving http=") || strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Error(log)
		}
	}
}

func instanceLogs(t *testing.T, dir string) (logs []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "instance-*.log"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no logs of instances: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, string(text))
	}
	return logs
}
