package redis

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
	"motorpool/telematics/delivery"
)

func pendingIn(unit telematics.Unit, in time.Duration) delivery.Pending {
	return delivery.Pending{
		Command: uuid.New(), Vehicle: 1, Unit: unit, Instance: "a",
		Deadline: time.Now().Add(in).UTC().Truncate(time.Millisecond),
	}
}

func TestPendingKey_KeysOfOneUnitShareASlot(t *testing.T) {
	p := pendingIn("352099004170375", time.Second)
	want := "motorpool:{352099004170375}:pending:" + p.Command.String()
	assert.Equal(t, pendingKey(p.Unit, p.Command), want, "key")
}

func TestReady_SaysWhyRedisTakesNoWrites(t *testing.T) {
	t.Parallel()
	db := openTable(t, storetest.StartRedis(t).URL()).db
	for says, change := range map[string][2][]any{
		"it is full: maxmemory is reached": {{"config", "set", "maxmemory", "100000"}, {"config", "set", "maxmemory", "0"}},
		"it is read-only: a replica":       {{"replicaof", "127.0.0.1", "1"}, {"replicaof", "no", "one"}},
	} {
		require.NoError(t, db.Client.Do(t.Context(), change[0]...).Err())
		if err := db.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("after %v: %v, want %q", change[0], err, says)
		}
		require.NoError(t, db.Client.Do(t.Context(), change[1]...).Err())
		assert.NoError(t, db.Ready(t.Context()), "after %v", change[1])
	}
}

func TestDB_KilledOrFrozenRedisIsNoticedAndRecovers(t *testing.T) {
	t.Parallel()
	server := storetest.StartRedis(t)
	r := openTable(t, server.URL())
	p := pendingIn("unit-1", 10*time.Second)
	calls := map[string]func(context.Context) error{
		"Ready":    r.db.Ready,
		"Register": func(ctx context.Context) error { return r.Register(p)(ctx) },
		"Lookup":   func(ctx context.Context) error { _, _, err := r.Lookup(ctx, p.Unit, p.Command); return err },
		"Release":  func(ctx context.Context) error { return r.Release(ctx, p) },
		"Wake":     func(ctx context.Context) error { return r.Wake(ctx, "a", p.Command) },
		"Contains": func(ctx context.Context) error { _, err := r.Contains(ctx, []delivery.Pending{p}); return err },
	}
	var mu sync.Mutex
	heard := map[telematics.CommandID]bool{}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- r.Listen(ctx, "a", func(id telematics.CommandID) {
			mu.Lock()
			defer mu.Unlock()
			heard[id] = true
		})
	}()
	hears := func() bool {
		id := uuid.New()
		if err := r.Wake(context.Background(), "a", id); err != nil {
			return false
		}
		time.Sleep(20 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		return heard[id]
	}
	for _, trouble := range []struct {
		name       string
		begin, end func() error
		within     time.Duration
	}{
		{"killed", server.Kill, server.Restart, 10 * time.Second},
		// Twice a second for reading: the most that a frozen server costs on an idle machine.
		{"frozen", server.Pause, server.Resume, 20 * time.Second},
	} {
		storetest.Eventually(t, "the instance listens", hears)
		require.NoError(t, trouble.begin())
		var wg sync.WaitGroup
		for name, do := range calls {
			wg.Go(func() {
				start := time.Now()
				if err := do(context.Background()); !unavailable.Is(err) {
					t.Errorf("%s: %s = %v, want unavailable", trouble.name, name, err)
				}
				if took := time.Since(start); took > trouble.within {
					t.Errorf("%s: %s took %v to fail", trouble.name, name, took)
				}
			})
		}
		wg.Wait()
		require.NoError(t, trouble.end())
		for name, do := range calls {
			storetest.Eventually(t, name+" works", func() bool { return do(context.Background()) == nil })
		}
	}
	storetest.Eventually(t, "the instance listens again", hears)
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Listen = %v", err)
		}
	case <-time.After(storetest.Patience):
		t.Error("Listen does not end with its context")
	}
}

func TestListen_EndsWhileRedisIsUnavailable(t *testing.T) {
	r := openTable(t, storetest.NoRedis)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := r.Listen(ctx, "a", func(telematics.CommandID) {}); err != nil || time.Since(start) > storetest.Patience {
		t.Errorf("Listen = %v after %v, want it to end with its context", err, time.Since(start))
	}
}

// Sentinels and clusters name servers that the URL does not, so no server is verified by the URL's
// name.
func TestClient_KindOfRedisByTheAddress(t *testing.T) {
	roots := x509.NewCertPool()
	for address, wantCluster := range map[string]bool{
		"redis://h:1/2": false, "redis://h:1?addr=i:2&addr=j:3": true, "redis://h:1?master_name=m&addr=i:2&addr=j:3": false,
		"rediss://h:1/2": false, "rediss://h:1?addr=i:2": true, "rediss://h:1?master_name=m": false,
	} {
		client, err := Config{URL: address, Timeout: time.Second, TLS: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}.client()
		require.NoError(t, err, "%s", address)
		var used *tls.Config
		cluster, isCluster := client.(*redis.ClusterClient)
		if isCluster {
			used = cluster.Options().TLSConfig
		} else {
			used = client.(*redis.Client).Options().TLSConfig // also with Sentinels
		}
		secured := strings.HasPrefix(address, "rediss")
		if isCluster != wantCluster || (used != nil) != secured ||
			secured && (used.RootCAs != roots || used.ServerName != "" || used.InsecureSkipVerify) {
			t.Errorf("%s is a %T with the TLS configuration %+v; want a cluster %v", address, client, used, wantCluster)
		}
		assert.NoError(t, client.Close())
	}
	for _, address := range []string{"", "http://h", "redis://h/db", "redis://h:1?wrong=1"} {
		if _, err := (Config{URL: address}).client(); err == nil {
			t.Errorf("%q was accepted as an address", address)
		}
	}
}

func TestEncodePending_IsReadBackAsWritten(t *testing.T) {
	want := delivery.Pending{
		Command: uuid.New(), Vehicle: 42, Unit: "a-unit_1", Instance: `in"stance`,
		Deadline: time.Date(2026, 1, 2, 10, 0, 0, 250e6, time.UTC),
	}
	if got, err := decodePending(encodePending(&want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v; want %+v", got, err, want)
	}
}
