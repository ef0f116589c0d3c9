package store

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
)

func TestManyInstancesMigrateAtOnce(t *testing.T) {
	address := newDatabaseFrom(t, "template0")
	var wg sync.WaitGroup
	for range 2 {
		p := open(t, address)
		wg.Go(func() {
			version, err := p.Migrate(context.Background())
			has, needs, errVersion := p.Version(context.Background())
			if err != nil || errVersion != nil || version == 0 || has != version || needs != version {
				t.Errorf("Migrate = %d, %v; Version = %d, %d, %v", version, err, has, needs, errVersion)
			}
		})
	}
	wg.Wait()
	p := open(t, address)
	addVehicle(t, p, 1)
	if _, err := p.Migrate(t.Context()); err != nil {
		t.Errorf("Migrate again: %v", err)
	}
	if _, err := p.Twin(t.Context(), 1); err != nil {
		t.Errorf("after migrating again: %v", err)
	}
}

func TestAnEmptyDatabaseSaysThatItNeedsMigrations(t *testing.T) {
	has, needs, err := open(t, newDatabaseFrom(t, "template0")).Version(t.Context())
	if err != nil || has != 0 || needs == 0 {
		t.Errorf("Version = %d, %d, %v", has, needs, err)
	}
}

func TestMigrationsGoForwardOnly(t *testing.T) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %v", files, err)
	}
	for _, file := range files {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "-- +goose Up\n") || strings.Contains(string(text), "+goose Down") {
			t.Errorf("%s: want one section, Up", file)
		}
	}
}
