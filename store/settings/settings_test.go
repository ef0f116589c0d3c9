package settings

import (
	"regexp"
	"sync"
	"testing"

	"motorpool/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestSharedGroup_IsOneSecretNameForAllInstances(t *testing.T) {
	address := storetest.NewDatabase(t)
	var mu sync.Mutex
	names := map[string]int{}
	var wg sync.WaitGroup
	for range 3 {
		p := storetest.Open(t, address)
		for range 4 {
			wg.Go(func() {
				name, err := SharedGroup(t.Context(), p)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				names[name]++
			})
		}
	}
	wg.Wait()
	for name, n := range names {
		if n != 12 || !regexp.MustCompile(`^motorpool-[0-9a-f]{32}$`).MatchString(name) {
			t.Errorf("%d of 12 instances got %q", n, name)
		}
	}
	other, err := SharedGroup(t.Context(), storetest.Open(t, storetest.NewDatabase(t)))
	if err != nil || names[other] > 0 {
		t.Errorf("another installation got %q, %v", other, err)
	}
}
