// Package rounds_test runs short rounds of the fault harness against the service, built with the
// race detector if the tests have it.
package rounds_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"motorpool/lab/chaos/failover"
	"motorpool/lab/chaos/maintenance"
	"motorpool/lab/chaos/money"
	"motorpool/lab/chaos/shards"
	"motorpool/lab/program"
	"motorpool/simulator/devstack"
	"motorpool/simulator/world"
)

var binary string // of the service

func TestMain(m *testing.M) { os.Exit(program.Main("motorpool/cmd/motorpool", &binary, m.Run)) }

// A round with thousands of bookings runs with: make chaos ARGS="--bookings 2000".
func TestMoney_EachChargeIsMadeOnceWhateverDies(t *testing.T) {
	needServers(t, devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer)
	round, logs := inWorld(t, func(ctx context.Context, w *world.World) (money.Result, error) {
		return money.Round(ctx, w, money.Config{Seed: 5, Bookings: 60, Instances: 2, Duration: 8 * time.Second, Hurry: true})
	})
	round.Write(t.Output())
	valid(t, round.Report.Violations, round.Worthless())
	for _, log := range logs {
		if !strings.Contains(log, "serving http=") {
			t.Error(log)
		}
	}
}

// The same round runs with more vehicles with: make chaos ARGS=--fault=postgres-async.
func TestFailover_ForgetsNothingThatWasExecuted(t *testing.T) {
	t.Parallel()
	needServers(t, devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer)
	round, logs := inWorld(t, func(ctx context.Context, w *world.World) (failover.Result, error) {
		return failover.Round(ctx, w, failover.Config{Seed: 3, Vehicles: 20})
	})
	round.Write(t.Output())
	valid(t, round.Violations, round.Worthless())
	if !slices.ContainsFunc(logs, func(log string) bool { return strings.Contains(log, "unrecorded command") }) {
		t.Error("want a log entry about an unrecorded command")
	}
}

// The same round runs with more commands with: make chaos ARGS=--shards.
func TestShards_CommandsGoOnWhereOneIsKilled(t *testing.T) {
	t.Parallel()
	needServers(t, devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer, devstack.HAProxyServer)
	round, _ := inWorld(t, func(ctx context.Context, w *world.World) (shards.Result, error) {
		return shards.Round(ctx, w, shards.Config{Seed: 3, Vehicles: 30, Commands: 500})
	})
	round.Write(t.Output())
	valid(t, round.Violations, round.Worthless())
}

func TestMaintenance_LosesNoModule(t *testing.T) {
	t.Parallel()
	round := maintained(t, maintenance.Config{Seed: 1, Modules: 4, Steps: 9})
	valid(t, round.Violations, round.Worthless())
}

// An operator who removes a credential before the next one is added loses modules: the round
// detects this.
func TestMaintenance_FindsModulesThatTheOtherOrderLoses(t *testing.T) {
	t.Parallel()
	if r := maintained(t, maintenance.Config{Seed: 1, Modules: 3, Steps: 8, RemoveFirst: true}); len(r.Violations) == 0 {
		t.Error("want a violation")
	}
}

func maintained(t *testing.T, c maintenance.Config) maintenance.Result {
	t.Helper()
	needServers(t, devstack.MosquittoServer)
	round, _ := inWorld(t, func(ctx context.Context, w *world.World) (maintenance.Result, error) {
		return maintenance.Round(ctx, w, c)
	})
	round.Write(t.Output())
	return round
}

func needServers(t *testing.T, servers ...string) {
	t.Helper()
	for _, server := range servers {
		devstack.NeedServer(t, server)
	}
}

// inWorld runs a round in a world of its servers, and returns its result, and the logs of the
// instances, in which there is no panic and no data race.
func inWorld[R any](t *testing.T, round func(context.Context, *world.World) (R, error)) (result R, logs []string) {
	t.Helper()
	dir := t.TempDir()
	err := world.Run(
		t.Context(), dir, binary, slog.New(slog.NewTextHandler(t.Output(), nil)),
		func(ctx context.Context, w *world.World) (err error) {
			result, err = round(ctx, w)
			return err
		},
	)
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(dir, "instance-*.log")) // the pattern is valid
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if logs = append(logs, string(log)); strings.Contains(string(log), "DATA RACE") || strings.Contains(string(log), "panic:") {
			t.Error(string(log))
		}
	}
	return result, logs
}

func valid[V any](t *testing.T, violations []V, worthless string) {
	t.Helper()
	for _, violation := range violations {
		t.Error(violation)
	}
	if worthless != "" {
		t.Errorf("the round is not valid: %s", worthless)
	}
}
