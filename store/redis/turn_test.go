package redis

import (
	"testing"
	"time"

	"motorpool/store/storetest"
)

func TestATurnIsOneInstancesUntilItIsNotKept(t *testing.T) {
	for name, address := range map[string]string{"miniredis": miniredis(t), "redis": storetest.StartRedis(t).URL()} {
		t.Run(name, func(t *testing.T) {
			here, there := open(t, address), open(t, address)
			turn := func(db *DB, instance string, keep time.Duration) bool {
				t.Helper()
				mine, err := db.Turn(t.Context(), "test", instance, keep)
				if err != nil {
					t.Fatal(err)
				}
				return mine
			}
			if !turn(here, "a", time.Hour) || turn(there, "b", time.Hour) || !turn(here, "a", time.Millisecond) {
				t.Error("the turn is not that of the first instance alone")
			}
			if name == "redis" { // miniredis has a separate clock
				for deadline := time.Now().Add(10 * time.Second); !turn(there, "b", time.Hour); time.Sleep(5 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatal("a turn that was not kept is not free")
					}
				}
				if turn(here, "a", time.Hour) {
					t.Error("the former instance has the turn, too")
				}
			}
		})
	}
}
