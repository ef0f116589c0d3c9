package main

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"motorpool/cmd/chaos/maintenance"
	"motorpool/cmd/internal/world"
	"motorpool/simulator/devstack"
)

func maintain(t *testing.T, c maintenance.Config) (r maintenance.Result) {
	t.Helper()
	devstack.NeedServer(t, devstack.MosquittoServer)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := world.Run(t.Context(), t.TempDir(), self, slog.New(slog.NewTextHandler(t.Output(), nil)), func(ctx context.Context, w *world.World) error {
		r, err = maintenance.Round(ctx, w, c)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	r.Write(t.Output())
	return r
}

func TestMaintenance_LosesNoModule(t *testing.T) {
	t.Parallel()
	if r := maintain(t, maintenance.Config{Seed: 1, Modules: 4, Steps: 9}); len(r.Violations) > 0 || r.Worthless() != "" {
		t.Errorf("%d violations; invalid round: %s", len(r.Violations), r.Worthless())
	}
}

// An operator who removes a credential before the next one is added loses modules: the round
// detects this.
func TestModulesThatTheOtherOrderLosesAreFound(t *testing.T) {
	t.Parallel()
	if r := maintain(t, maintenance.Config{Seed: 1, Modules: 3, Steps: 3, RemoveFirst: true}); len(r.Violations) == 0 {
		t.Error("want a violation")
	}
}
