package redis

import (
	"errors"
	"slices"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
)

func TestPlace_LetsNothingThroughUntilItIsAdmitted(t *testing.T) {
	t.Parallel()
	for name, url := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			open := func() (*DB, *Place) {
				db, err := New(Config{URL: url})
				require.NoError(t, err)
				t.Cleanup(func() { _ = db.Close() })
				return db, NewPlace(db)
			}
			exchange := func(p *Place, claim string, asks bool, want ...string) {
				t.Helper()
				if heard, asked, err := p.Exchange(t.Context(), claim, asks); err != nil || !slices.Equal(heard, want) || len(asked) > 0 {
					t.Errorf("Exchange = %q, %q, %v; want %q", heard, asked, err, want)
				}
			}
			db, first := open()
			_, second := open()
			if err := db.Ready(t.Context()); err == nil {
				t.Error("a write passed before the place was admitted")
			}
			exchange(first, "one", true)
			exchange(first, "one", false)
			exchange(second, "two", true, "one")
			first.Admit(nil)
			assert.NoError(t, db.Ready(t.Context()), "admitted")
			if ok, err := db.TryLease(t.Context(), "a task", "one", time.Second); !ok || err != nil {
				t.Errorf("a script: %v, %v", ok, err)
			}
			exchange(first, "one-2", false, "one")
			refused := errors.New("another installation uses it")
			first.Admit(refused)
			if err := db.Ready(t.Context()); !errors.Is(err, refused) {
				t.Errorf("refused: %v", err)
			}
			if _, err := db.TryLease(t.Context(), "a task", "one", time.Second); !errors.Is(err, refused) {
				t.Errorf("refused: a script: %v", err)
			}
		})
	}
}
