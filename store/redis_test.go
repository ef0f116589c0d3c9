package store

import (
	"cmp"
	"context"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"

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

func TestWhatIsInFlightIsListedByDeadline(t *testing.T) {
	for name, address := range map[string]string{"miniredis": storetest.StartMiniredis(t).URL(), "redis": storetest.StartRedis(t).URL()} {
		t.Run(name, func(t *testing.T) {
			r := openRedis(t, address)
			var want []delivery.Pending
			for _, seconds := range []int{30, 10, 20} {
				p := pendingIn("unit-1", time.Duration(seconds)*time.Second)
				if err := r.Register(p)(t.Context()); err != nil {
					t.Fatal(err)
				}
				want = append(want, p)
			}
			slices.SortFunc(want, func(a, b delivery.Pending) int { return cmp.Compare(a.Deadline.UnixMilli(), b.Deadline.UnixMilli()) })
			released := pendingIn("unit-2", time.Second)
			if err := r.Register(released)(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.Release(t.Context(), released); err != nil {
				t.Fatal(err)
			}
			lost := pendingIn("unit-3", time.Second)
			if err := r.Register(lost)(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := r.client.Del(t.Context(), pendingKey(lost.Unit, lost.Command)).Err(); err != nil {
				t.Fatal(err)
			}
			got, err := r.InFlight(t.Context())
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("InFlight\n got %+v, %v\nwant %+v", got, err, want)
			}
			if err := r.client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			if got, err := r.InFlight(t.Context()); err != nil || len(got) > 0 {
				t.Errorf("InFlight of an emptied Redis = %+v, %v", got, err)
			}
		})
	}
}

func TestTheIndexOfDeadlinesForgetsWhatIsGone(t *testing.T) {
	r := openRedis(t, storetest.StartMiniredis(t).URL())
	gone := pendingIn("unit-1", -pendingFor-time.Second)
	stays := pendingIn("unit-2", -pendingFor+time.Minute)
	for _, p := range []delivery.Pending{gone, stays} {
		if err := r.Register(p)(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	members, err := r.client.ZRange(t.Context(), deadlinesKey, 0, -1).Result()
	if want := []string{deadlinesMember(stays.Unit, stays.Command)}; err != nil || !slices.Equal(members, want) {
		t.Errorf("index %v, %v; want %v", members, err, want)
	}
}

func TestKeysOfOneUnitShareASlot(t *testing.T) {
	p := pendingIn("352099004170375", time.Second)
	want := "motorpool:{352099004170375}:pending:" + p.Command.String()
	if key := pendingKey(p.Unit, p.Command); key != want {
		t.Errorf("key %s, want %s", key, want)
	}
}

func TestAKilledRedisIsNoticedAndFoundAgain(t *testing.T) {
	server := storetest.StartRedis(t)
	r := openRedis(t, server.URL())
	p := pendingIn("unit-1", 10*time.Second)
	calls := map[string]func(context.Context) error{
		"Ready":    r.Ready,
		"Register": func(ctx context.Context) error { return r.Register(p)(ctx) },
		"Lookup":   func(ctx context.Context) error { _, _, err := r.Lookup(ctx, p.Unit, p.Command); return err },
		"Release":  func(ctx context.Context) error { return r.Release(ctx, p) },
		"Wake":     func(ctx context.Context) error { return r.Wake(ctx, "a", p.Command) },
		"InFlight": func(ctx context.Context) error { _, err := r.InFlight(ctx); return err },
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
		// A second for reading, once more: what a frozen server costs at most, on an idle machine.
		{"frozen", server.Pause, server.Resume, 20 * time.Second},
	} {
		storetest.Eventually(t, "the instance listens", hears)
		if err := trouble.begin(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for name, do := range calls {
			wg.Go(func() {
				start := time.Now()
				if err := do(context.Background()); !unavailable.Is(err) {
					t.Errorf("%s: %s = %v, want the error of a server that is away", trouble.name, name, err)
				}
				if took := time.Since(start); took > trouble.within {
					t.Errorf("%s: %s took %v to notice", trouble.name, name, took)
				}
			})
		}
		wg.Wait()
		if err := trouble.end(); err != nil {
			t.Fatal(err)
		}
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

func TestListenEndsWhileRedisIsAway(t *testing.T) {
	server := storetest.StartRedis(t)
	r := openRedis(t, server.URL())
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := r.Listen(ctx, "a", func(telematics.CommandID) {}); err != nil || time.Since(start) > storetest.Patience {
		t.Errorf("Listen = %v after %v", err, time.Since(start))
	}
}

func TestTheAddressTellsTheKindOfRedis(t *testing.T) {
	for address, want := range map[string]redis.UniversalClient{
		"redis://h:1/2":                               &redis.Client{},
		"redis://h:1?addr=i:2&addr=j:3":               &redis.ClusterClient{},
		"redis://h:1?master_name=m&addr=i:2&addr=j:3": &redis.Client{},
	} {
		client, err := RedisConfig{URL: address, Timeout: time.Second}.client()
		if err != nil || reflect.TypeOf(client) != reflect.TypeOf(want) {
			t.Errorf("%s is a %T, %v; want a %T", address, client, err, want)
			continue
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
	}
	for _, address := range []string{"", "http://h", "redis://h/db", "redis://h:1?wrong=1"} {
		if _, err := (RedisConfig{URL: address}).client(); err == nil {
			t.Errorf("%q is an address", address)
		}
	}
}

// startMiniredis starts one whose clock a test may set.
func TestCommandsAreAddedWhereTheirIndexCannotBeWritten(t *testing.T) {
	r := openRedis(t, storetest.StartMiniredis(t).URL())
	if err := r.client.Set(t.Context(), deadlinesKey, "not a sorted set", 0).Err(); err != nil {
		t.Fatal(err)
	}
	p := pendingIn("unit-1", 10*time.Second)
	if err := r.Register(p)(t.Context()); err != nil {
		t.Errorf("Register = %v", err)
	}
	if _, found, err := r.Lookup(t.Context(), p.Unit, p.Command); !found || err != nil {
		t.Errorf("Lookup = %v, %v", found, err)
	}
}
func TestEncodePending_IsReadBackAsWritten(t *testing.T) {
	want := delivery.Pending{
		Command: uuid.New(), Vehicle: 42, Unit: "a-unit_1", Instance: `in"stance`, Deadline: time.Date(2026, 1, 2, 10, 0, 0, 250e6, time.UTC),
	}
	if got, err := decodePending(encodePending(&want)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("read as %+v, %v; want %+v", got, err, want)
	}
}
