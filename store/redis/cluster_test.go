package redis

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

func TestPartOf_EveryPartHasASeparateTag(t *testing.T) {
	// The examples are those of the cluster specification and of redis-cli cluster keyslot.
	for tag, slot := range map[string]int{"123456789": 12739, "foo": 12182, "": 0} {
		assert.Equal(t, slotOf(tag), slot, "slot of %q", tag)
	}
	for part, tag := range partTags() {
		if tag == "" || partOf(tag) != part {
			t.Errorf("the tag of part %d is %q, which belongs to part %d", part, tag, partOf(tag))
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

// Commands to vehicles on the other masters continue throughout; commands to those on the failed
// master continue as soon as the cluster has replaced it.
func TestCluster_FailedMasterAffectsOnlyItsVehicles(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.RedisServer)
	const masters = 3
	cluster, err := devstack.StartRedisCluster(t.TempDir(), masters, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cluster.Close() })
	const dying = 1
	r := openTable(t, cluster.URL())
	ready := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // the limit of /readyz
		defer cancel()
		return r.db.Ready(ctx)
	}
	register := func(unit telematics.Unit) error {
		// The limit of a step of the broker.
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		return r.Register(pendingIn(unit, 10*time.Second))(ctx)
	}
	for n := range masters {
		require.NoError(t, register(unitOf(n, masters)), "master %d", n)
	}
	storetest.Eventually(t, "the cluster is ready", func() bool { return ready() == nil })

	watching, stop := context.WithCancel(t.Context())
	defer stop()
	var others sync.WaitGroup
	var mu sync.Mutex
	var pause time.Duration // the longest without a command to a running master
	note := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		pause = max(pause, d)
	}
	for n := range masters {
		if n == dying {
			continue
		}
		others.Go(func() {
			last := time.Now()
			defer func() { note(time.Since(last)) }()
			for ; watching.Err() == nil; time.Sleep(20 * time.Millisecond) {
				if err := register(unitOf(n, masters)); err != nil {
					t.Logf("a vehicle on the running master %d: %v", n, err)
					continue
				}
				note(time.Since(last))
				last = time.Now()
			}
		})
	}
	killed := time.Now()
	require.NoError(t, cluster.Masters[dying].Kill())
	if err := ready(); err == nil {
		t.Error("ready although a master is missing")
	} else {
		t.Log(err)
	}
	var healed time.Duration
	storetest.Eventually(t, "the cluster has replaced its master", func() bool {
		if healed = time.Since(killed); healed > storetest.Patience {
			t.Fatal("the cluster did not recover")
		}
		return cluster.Replicas[dying].IsMaster()
	})
	storetest.Eventually(t, "vehicles on the failed master are served", func() bool { return register(unitOf(dying, masters)) == nil })
	served := time.Since(killed)
	t.Logf("the cluster recovered within %v, commands continued after %v", healed, served)
	if served > healed+storetest.Patience/2 {
		t.Errorf("commands continued %v after the master's failure, although the cluster had recovered after %v", served, healed)
	}
	storetest.Eventually(t, "the recovered cluster is ready", func() bool { return ready() == nil })
	stop()
	others.Wait()
	// A busy machine delays some.
	if pause > served/2 {
		t.Errorf("vehicles on the running masters waited %v while one was replaced in %v", pause, served)
	}
}
