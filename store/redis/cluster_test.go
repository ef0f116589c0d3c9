package redis

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestEveryPartOfAClusterHasASeparateTag(t *testing.T) {
	// The examples of the cluster specification, and of redis-cli cluster keyslot.
	for tag, slot := range map[string]int{"123456789": 12739, "foo": 12182, "": 0} {
		if got := slotOf(tag); got != slot {
			t.Errorf("slot of %q is %d, want %d", tag, got, slot)
		}
	}
	for part, tag := range partTags() {
		if tag == "" || partOf(tag) != part {
			t.Errorf("tag of part %d is %q, of part %d", part, tag, partOf(tag))
		}
	}
}

// unitOf returns a unit whose keys are in the nth of count equal ranges of slots.
func unitOf(n, count int) telematics.Unit {
	for i := 0; ; i++ {
		if unit := fmt.Sprintf("unit-%d", i); slotOf(unit)*count/clusterSlots == n {
			return telematics.Unit(unit)
		}
	}
}

// Commands to vehicles on the other masters go on throughout, those on the failed one as soon as
// the cluster has replaced it.
func TestTheDeathOfAClustersMasterStopsItsOwnVehiclesAlone(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.RedisServer)
	const masters = 3
	cluster, err := devstack.StartRedisCluster(t.TempDir(), masters)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cluster.Close() })
	const dying = 1
	r := openTable(t, cluster.URL())
	ready := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // as /readyz
		defer cancel()
		return r.db.Ready(ctx)
	}
	register := func(unit telematics.Unit) error {
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // as the broker's step
		defer cancel()
		return r.Register(pendingIn(unit, 10*time.Second))(ctx)
	}
	for n := range masters {
		if err := register(unitOf(n, masters)); err != nil {
			t.Fatalf("master %d: %v", n, err)
		}
	}
	if err := ready(); err != nil {
		t.Fatal(err)
	}

	watching, stop := context.WithCancel(t.Context())
	defer stop()
	var others sync.WaitGroup
	for n := range masters {
		if n == dying {
			continue
		}
		others.Go(func() {
			for ; watching.Err() == nil; time.Sleep(20 * time.Millisecond) {
				if err := register(unitOf(n, masters)); err != nil {
					t.Errorf("a vehicle on master %d, which lives: %v", n, err)
				}
			}
		})
	}
	killed := time.Now()
	if err := cluster.Masters[dying].Kill(); err != nil {
		t.Fatal(err)
	}
	if err := ready(); err == nil {
		t.Error("ready without a master")
	} else {
		t.Log(err)
	}
	var healed time.Duration
	storetest.Eventually(t, "the cluster has replaced its master", func() bool {
		if healed = time.Since(killed); healed > storetest.Patience {
			t.Fatal("the cluster did not heal")
		}
		return cluster.Replicas[dying].IsMaster()
	})
	storetest.Eventually(t, "vehicles on the failed master are served", func() bool { return register(unitOf(dying, masters)) == nil })
	served := time.Since(killed)
	t.Logf("the cluster healed within %v, commands go on after %v", healed, served)
	if served > healed+5*time.Second {
		t.Errorf("commands went on %v after the master's death, the cluster had healed after %v", served, healed)
	}
	if err := ready(); err != nil {
		t.Errorf("after the cluster has healed: %v", err)
	}
	stop()
	others.Wait()
}
