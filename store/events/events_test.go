package events

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"motorpool/broker"
	"motorpool/broker/brokertest"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/redis"
	"motorpool/store/storetest"
	"motorpool/telematics"
)

var _ broker.Events = (*Log)(nil)

func TestMain(m *testing.M) { storetest.Main(m) }

func TestEvents_KeepTheContract(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{"miniredis": storetest.StartMiniredis(t).URL(), "redis": storetest.StartRedis(t).URL()} {
		t.Run(name, func(t *testing.T) { eventsContract(t, address) })
	}
}

func TestEvents_ContractOverARedisCluster(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.RedisServer)
	cluster, err := devstack.StartRedisCluster(t.TempDir(), 3, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cluster.Close() })
	eventsContract(t, cluster.URL())
	t.Run("EveryMasterCarriesAPart", func(t *testing.T) { losesMaster(t, cluster) })
}

func eventsContract(t *testing.T, address string) {
	here, there := openRedis(t, address), openRedis(t, address)
	cluster, spread := here.Client.(*goredis.ClusterClient)
	brokertest.EventsContract(t, func(t *testing.T) brokertest.EventLogs {
		empty := func() {
			flush := func(ctx context.Context, server *goredis.Client) error { return server.FlushAll(ctx).Err() }
			var err error
			if spread {
				err = cluster.ForEachMaster(context.Background(), flush)
			} else {
				err = here.Client.FlushAll(context.Background()).Err()
			}
			require.NoError(t, err)
		}
		empty()
		return brokertest.EventLogs{Here: New(here), There: New(there), Empty: empty, Spread: spread}
	})
}

// losesMaster kills a master: only events of its vehicles are missing until it is replaced.
func losesMaster(t *testing.T, cluster *devstack.RedisCluster) {
	db := openRedis(t, cluster.URL())
	l := New(db)
	var mu sync.Mutex
	heard := map[telematics.VehicleID]bool{}
	ctx, stop := context.WithCancel(t.Context())
	begun := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		_ = l.Follow(ctx, 1, func([]telematics.Event) { close(begun) }, func(events []telematics.Event) {
			mu.Lock()
			defer mu.Unlock()
			for _, e := range events {
				heard[e.Vehicle] = true
			}
		})
	})
	t.Cleanup(func() { stop(); following.Wait() })
	<-begun
	const dying = 1
	require.NoError(t, cluster.Masters[dying].Kill())
	var events []telematics.Event
	for id := telematics.VehicleID(1); id <= 3*streams; id++ {
		events = append(
			events,
			telematics.Event{
				Kind: telematics.PresenceEvent, Vehicle: id, At: time.Now(),
				Change: &telematics.Change{Vehicle: id, Presence: telematics.Offline},
			},
		)
	}
	missing, err := l.Publish(t.Context(), events)
	if err == nil || len(missing) == 0 || len(missing) > len(events)/2 {
		t.Fatalf("%d of %d events are missing without one of three masters, error %v", len(missing), len(events), err)
	}
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) == len(events)-len(missing)
	}
	storetest.Eventually(t, "the events of the other masters are read", all)
	published := len(events)
	events, missing = missing, nil
	storetest.Eventually(t, "the rest is published once the master is replaced", func() bool {
		events, err = l.Publish(t.Context(), events)
		return err == nil
	})
	storetest.Eventually(t, "all events are read", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) == published
	})
}

// Events older than an hour are removed, except for the newest of them: a follower may be there.
func TestPublish_RemovesOldEntries(t *testing.T) {
	server := storetest.StartRedis(t)
	db := openRedis(t, server.URL())
	hourAgo := time.Now().Add(-keptFor).UnixMilli()
	const old = 1000
	for n := range old {
		id := fmt.Sprintf("%d-0", hourAgo-old+int64(n))
		require.NoError(t, db.Client.XAdd(t.Context(),
			&goredis.XAddArgs{Stream: eventsKey, ID: id, Values: []any{eventField, "{}"}}).Err())
	}
	last := fmt.Sprintf("%d-0", hourAgo-1)
	_, err := New(db).Publish(t.Context(), []telematics.Event{{Kind: telematics.ResetEvent, At: time.Now()}})
	require.NoError(t, err)
	left, err := db.Client.XRange(t.Context(), eventsKey, "-", "+").Result()
	if err != nil || len(left) > old/2 || !slices.ContainsFunc(left, func(m goredis.XMessage) bool { return m.ID == last }) {
		t.Errorf("%d of %d old entries are left, error %v; want at most half, and the newest", len(left), old, err)
	}
	if events, complete, err := New(db).After(t.Context(), last, "", 10); err != nil || !complete || len(events) != 1 {
		t.Errorf("after the newest old entry: %d events, complete %v, error %v; want 1, complete", len(events), complete, err)
	}
	if ttl := db.Client.TTL(t.Context(), eventsKey).Val(); ttl <= 0 || ttl > unusedFor {
		t.Errorf("the stream expires in %v, want at most %v", ttl, unusedFor)
	}
}

// A clock that leaps ahead, Redis's or, as seen from there, the instance's, makes no event old.
func TestPublish_KeepsWhatIsYoungByEitherClock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ before, after time.Duration }{
		"redis's leaps":        {-time.Minute, 2 * keptFor},
		"the instance's leaps": {-2*keptFor - time.Minute, -2 * keptFor},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := storetest.StartMiniredis(t)
			l, event := New(openRedis(t, server.URL())), []telematics.Event{{Kind: telematics.ResetEvent, At: time.Now()}}
			for range 3 {
				server.SetTime(time.Now().Add(c.before))
				_, err := l.Publish(t.Context(), event)
				require.NoError(t, err)
			}
			server.SetTime(time.Now().Add(c.after))
			_, err := New(l.db).Publish(t.Context(), event) // which has removed nothing yet
			require.NoError(t, err)
			if left := l.db.Client.XLen(t.Context(), eventsKey).Val(); left != 4 {
				t.Errorf("%d of 4 events are left", left)
			}
		})
	}
}

func openRedis(t testing.TB, address string) *redis.DB {
	t.Helper()
	db, err := redis.New(redis.Config{URL: address})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return db
}
