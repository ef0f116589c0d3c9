// Package rounds_test runs short rounds of the fault harness against the service, built with the
// race detector if the tests have it.
package rounds_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/lab/chaos/maintenance"
	"motorpool/lab/chaos/money"
	"motorpool/lab/chaos/runner"
	"motorpool/lab/program"
	"motorpool/lab/world"
	"motorpool/simulator/devstack"
)

// The programs: the service, and the fault harness.
var binary, harness string

func TestMain(m *testing.M) {
	os.Exit(program.Main("motorpool/cmd/motorpool", &binary, func() int { return program.Main("motorpool/lab/chaos", &harness, m.Run) }))
}

// A round with thousands of bookings runs with: make chaos ARGS="--bookings 2000".
func TestMoney_EachChargeIsMadeOnceWhateverDies(t *testing.T) {
	needServers(t, devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer)
	c := runner.Config{Seed: 5, Bookings: 60, Instances: 2, Duration: 8 * time.Second}
	result, logs := run(t, money.Round(money.Plan{Hurry: true}), c)
	valid(t, result)
	for _, log := range logs {
		if !strings.Contains(log, "serving http=") {
			t.Error(log)
		}
	}
}

// A round with thousands of rentals runs with: make chaos ARGS="--rentals 2000".
func TestRentals_EachIsChargedOnceAndItsCarObeys(t *testing.T) {
	needServers(t, devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer)
	c := runner.Config{Seed: 5, Rentals: 60, Instances: 2, Duration: 12 * time.Second}
	result, _ := run(t, money.Rentals(money.Plan{Hurry: true}), c)
	valid(t, result)
}

// Rounds with more commands: make chaos ARGS=--fault=postgres-async, ARGS=--shards.
func TestCommands_RoundsOfOneFault(t *testing.T) {
	for name, args := range map[string][]string{
		"a failover forgets nothing that was executed":        {"--fault=postgres-async"},
		"commands go on where one of several brokers is lost": {"--shards"},
	} {
		t.Run(name, func(t *testing.T) {
			needServers(t, devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer, devstack.HAProxyServer,
				devstack.PrometheusServer)
			args = append(args, "--binary="+binary, "--seed=3", "--vehicles=70", "--instances=2", "--callers=16", "--commands=300",
				"--duration=20s")
			output, err := exec.CommandContext(t.Context(), harness, args...).CombinedOutput()
			found := strings.Count(string(output), "VIOLATION of ")
			// Next to other tests alerts fire late: rounds before a release judge them.
			alerts := strings.Count(string(output), `VIOLATION of "alerts fire in their fault"`)
			other := strings.Contains(string(output), "proves nothing") || strings.Contains(string(output), "data races or panics:")
			if err != nil && (alerts == 0 || found > alerts || other) {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

func TestMaintenance_LosesNoModule(t *testing.T) {
	t.Parallel()
	needServers(t, devstack.MosquittoServer)
	result, _ := run(t, maintenance.Round(maintenance.Plan{Modules: 4, Steps: 9}), runner.Config{Seed: 1})
	valid(t, result)
}

// An operator who removes a credential before the next one is added loses modules: the round
// detects this.
func TestMaintenance_FindsModulesThatTheOtherOrderLoses(t *testing.T) {
	t.Parallel()
	needServers(t, devstack.MosquittoServer)
	plan := maintenance.Plan{Modules: 3, Steps: 8, RemoveFirst: true}
	if result, _ := run(t, maintenance.Round(plan), runner.Config{Seed: 1}); len(result.Violations) == 0 {
		t.Error("want a violation")
	}
}

func needServers(t *testing.T, servers ...string) {
	t.Helper()
	for _, server := range servers {
		devstack.NeedServer(t, server)
	}
}

// run runs a round, prints its result and returns it, and the logs of the instances, in which there
// is no panic and no data race.
func run(t *testing.T, kind runner.Kind, c runner.Config) (result runner.Result, logs []string) {
	t.Helper()
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	require.NoError(t, world.Run(t.Context(), dir, binary, log, func(ctx context.Context, w *world.World) (err error) {
		result, err = runner.Run(ctx, w, kind, c)
		return err
	}))
	result.Write(t.Output())
	files, _ := filepath.Glob(filepath.Join(dir, "instance-*.log")) // the pattern is valid
	for _, file := range files {
		log, err := os.ReadFile(file)
		require.NoError(t, err)
		if logs = append(logs, string(log)); strings.Contains(string(log), "DATA RACE") || strings.Contains(string(log), "panic:") {
			t.Error(string(log))
		}
	}
	return result, logs
}

func valid(t *testing.T, result runner.Result) {
	t.Helper()
	for _, violation := range result.Violations {
		t.Error(violation)
	}
	assert.Equal(t, result.Worthless, "", "the round is not valid")
}
