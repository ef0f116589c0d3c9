package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"motorpool/cmd/chaos/failover"
	"motorpool/cmd/internal/world"
	"motorpool/simulator/devstack"
)

// The same round runs with more vehicles with: make chaos ARGS=--fault=postgres-async.
func TestNothingThatWasExecutedIsForgottenInAFailover(t *testing.T) {
	t.Parallel()
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer} {
		devstack.NeedServer(t, server)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var round failover.Result
	if err := world.Run(t.Context(), dir, self, slog.New(slog.NewTextHandler(t.Output(), nil)), func(ctx context.Context, w *world.World) error {
		round, err = failover.Round(ctx, w, failover.Config{Seed: 3, Vehicles: 20})
		return err
	}); err != nil {
		t.Fatal(err)
	}
	round.Write(t.Output())
	for _, violation := range round.Violations {
		t.Error(violation)
	}
	if why := round.Worthless(); why != "" {
		t.Errorf("the round is not valid: %s", why)
	}
	warned := false
	for _, log := range instanceLogs(t, dir) {
		if strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Error(log)
		}
		warned = warned || strings.Contains(log, "unrecorded command")
	}
	if !warned {
		t.Error("want a log entry about an unrecorded command")
	}
}
