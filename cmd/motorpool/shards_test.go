package main

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"

	"motorpool/cmd/chaos/shards"
	"motorpool/cmd/internal/world"
	"motorpool/simulator/devstack"
)

// The same round runs with more commands with: make chaos ARGS=--shards.
func TestCommandsGoOnWhereAnMQTTShardIsKilled(t *testing.T) {
	t.Parallel()
	for _, server := range []string{devstack.PostgresServer, devstack.RedisServer, devstack.MosquittoServer, devstack.HAProxyServer} {
		devstack.NeedServer(t, server)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var round shards.Result
	if err := world.Run(t.Context(), dir, self, slog.New(slog.NewTextHandler(t.Output(), nil)), func(ctx context.Context, w *world.World) error {
		round, err = shards.Round(ctx, w, shards.Config{Seed: 3, Vehicles: 30, Commands: 500})
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
	for _, log := range instanceLogs(t, dir) {
		if strings.Contains(log, "DATA RACE") || strings.Contains(log, "panic:") {
			t.Error(log)
		}
	}
}
