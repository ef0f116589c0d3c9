package service_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"motorpool/simulator/devstack"
	"motorpool/telematics"
)

// A cluster that lost a master promotes a replica. Until then only the vehicles of that master
// wait.
func TestCluster_CommandsGoOnWhereARedisClusterLosesAMaster(t *testing.T) {
	t.Parallel()
	const vehicles, masters = 24, 3
	s := realStack(t, vehicles)
	cluster, err := devstack.StartRedisCluster(filepath.Join(s.dir, "cluster"), masters, nil)
	s.must(err)
	t.Cleanup(func() { _ = cluster.Close() })
	s.redisURL = cluster.URL()
	i := s.serve()
	s.drive(nil, healthy)
	lock := func(vehicle int) bool { return i.controlOnce(vehicle, telematics.Lock).status == http.StatusOK }
	all := func(do func(vehicle int)) {
		var calls sync.WaitGroup
		for vehicle := 1; vehicle <= vehicles; vehicle++ {
			calls.Go(func() { do(vehicle) })
		}
		calls.Wait()
	}
	all(func(vehicle int) {
		if !lock(vehicle) {
			t.Errorf("vehicle %d is not served although the cluster is complete", vehicle)
		}
	})

	s.must(cluster.Masters[0].Kill())
	killed := time.Now()
	_, why := i.readiness()
	if strings.Contains(why, `"redis":"ok"`) {
		t.Errorf("readyz without a master: %s, want redis to fail", why)
	}
	var mu sync.Mutex
	var served int
	var last time.Duration
	all(func(vehicle int) {
		first := true
		for ; !lock(vehicle); first = false {
			if took := time.Since(killed); took > slower*15*time.Second {
				t.Errorf("vehicle %d is not served %v after the failure", vehicle, took)
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		mu.Lock()
		defer mu.Unlock()
		last = max(last, time.Since(killed))
		if first {
			served++
		}
	})
	t.Logf("%d of %d vehicles were served throughout, the others again after %v; readyz said %s", served, vehicles, last, why)
	if served < vehicles/3 || served == vehicles {
		t.Errorf("%d of %d vehicles were served throughout, want those of two of the three masters", served, vehicles)
	}
	s.eventually(20*time.Second, "ready again", func() bool { status, _ := i.readiness(); return status == http.StatusOK })
}
