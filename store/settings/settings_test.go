package settings

import (
	"context"
	"regexp"
	"sync"
	"testing"

	"motorpool/internal/assert"
	"motorpool/store/pg"
	"motorpool/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestSharedGroup_IsOneSecretNameForAllInstances(t *testing.T) {
	testOneForAllInstances(t, SharedGroup, `^motorpool-[0-9a-f]{32}$`)
}

func TestInstallation_IsOneIDForAllInstances(t *testing.T) {
	testOneForAllInstances(t, Installation, `^[0-9a-f]{32}$`)
}

func testOneForAllInstances(t *testing.T, setting func(context.Context, *pg.DB) (string, error), format string) {
	t.Helper()
	address := storetest.NewDatabase(t)
	var mu sync.Mutex
	names := map[string]int{}
	var wg sync.WaitGroup
	for range 3 {
		p := storetest.Open(t, address)
		for range 4 {
			wg.Go(func() {
				name, err := setting(t.Context(), p)
				assert.NoError(t, err)
				mu.Lock()
				defer mu.Unlock()
				names[name]++
			})
		}
	}
	wg.Wait()
	for name, n := range names {
		if n != 12 || !regexp.MustCompile(format).MatchString(name) {
			t.Errorf("%d of 12 instances got %q", n, name)
		}
	}
	other, err := setting(t.Context(), storetest.Open(t, storetest.NewDatabase(t)))
	if err != nil || names[other] > 0 {
		t.Errorf("another installation got %q, %v", other, err)
	}
}

// An instance whose database is unavailable, or a former primary, knows its names.
func TestSettings_AreReadOnce(t *testing.T) {
	db := storetest.Open(t, storetest.NewDatabase(t))
	settings := map[string]func(context.Context, *pg.DB) (string, error){"installation": Installation, "shared group": SharedGroup}
	first := map[string]string{}
	for name, read := range settings {
		var err error
		if first[name], err = read(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Exec(t, db.Pool, `alter table settings rename to settings_away`)
	for name, read := range settings {
		for range 2 {
			if again, err := read(t.Context(), db); err != nil || again != first[name] {
				t.Errorf("%s read again: %q, %v; want %q without a query", name, again, err, first[name])
			}
		}
	}
}
