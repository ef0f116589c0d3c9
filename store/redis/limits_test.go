package redis

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
	"motorpool/simulator/devstack"
	"motorpool/store/groupcommit"
	"motorpool/store/storetest"
	"motorpool/store/unavailable"
	"motorpool/telematics"
)

// limitsAt opens an instance with timeouts that are long enough for a busy machine.
func limitsAt(t *testing.T, address string) *Limits {
	t.Helper()
	return patient(NewLimits(open(t, address)))
}

func patient(l *Limits) *Limits {
	l.timeout = storetest.Patience
	l.takes = groupcommit.New(groupcommit.Limits{MaxBatch: tripBatch, Timeout: storetest.Patience}, l.takeEach)
	return l
}

func perMinute(n int) telematics.Rate { return telematics.Rate{Limit: n, Per: time.Minute} }

func counted(t *testing.T, l *Limits, key string, n int) telematics.Quota {
	t.Helper()
	q, err := takeOne(t.Context(), l, key, perMinute(n), 1)
	require.NoError(t, err)
	return q
}

// takeOne takes from one limit.
func takeOne(ctx context.Context, l *Limits, key string, rate telematics.Rate, cost int) (telematics.Quota, error) {
	quotas, err := l.Take(ctx, telematics.Limit{Key: key, Rate: rate, Cost: cost})
	if err != nil {
		return telematics.Quota{}, err
	}
	return quotas[0], nil
}

func TestLimits_ALimitIsSharedByAllInstances(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			here, there := limitsAt(t, address), limitsAt(t, address)
			for i := range 10 {
				q := counted(t, []*Limits{here, there}[i%2], "vehicle:1", 10)
				if q.Over || q.Limit != 10 || q.Remaining > 9-i || q.Remaining < 8-i || q.Reset <= 0 ||
					q.Reset > time.Duration(i+1)*6*time.Second {
					t.Errorf("request %d: %+v", i+1, q)
				}
			}
			for _, l := range []*Limits{here, there} {
				if q := counted(t, l, "vehicle:1", 10); !q.Over || q.Limit != 10 || q.Remaining != 0 || q.Reset <= 0 ||
					q.Reset > 6*time.Second {
					t.Errorf("one request more: %+v, want it refused", q)
				}
			}
			if q := counted(t, here, "vehicle:2", 10); q.Over {
				t.Errorf("another vehicle: %+v, want it accepted", q)
			}
		})
	}
}

func TestTake_ConcurrentRequestsDoNotExceedTheLimit(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			instances := []*Limits{limitsAt(t, address), limitsAt(t, address)}
			var passed atomic.Int64
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					q, err := takeOne(t.Context(), instances[i%2], "vehicle:1", perMinute(10), 1)
					if err != nil {
						t.Error(err)
					} else if !q.Over {
						passed.Add(1)
					}
				})
			}
			all.Wait()
			assert.Equal(t, passed.Load(), 10, "of 60 requests passed")
		})
	}
}

func TestTake_RetryAfterTheNamedTimePasses(t *testing.T) {
	t.Parallel()
	for _, rate := range []telematics.Rate{perMinute(10), {Limit: 20, Per: time.Hour}} {
		server := storetest.StartMiniredis(t)
		clock := time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC)
		l := limitsAt(t, server.URL())
		take := func(after time.Duration) telematics.Quota {
			t.Helper()
			server.SetTime(clock.Add(after))
			q, err := takeOne(t.Context(), l, "vehicle:1", rate, 1)
			require.NoError(t, err)
			return q
		}
		for i := range rate.Limit {
			if q := take(0); q.Over || q.Limit != rate.Limit || q.Remaining != rate.Limit-1-i {
				t.Fatalf("request %d of %+v: %+v", i+1, rate, q)
			}
		}
		one := rate.Per / time.Duration(rate.Limit) // after which one request is restored
		for range 20 {
			if q := take(0); !q.Over || q.Reset != one {
				t.Fatalf("over %+v: %+v, want a refusal for %v", rate, q, one)
			}
			if q := take(one - time.Millisecond); !q.Over || q.Reset.Round(time.Millisecond) != time.Millisecond {
				t.Errorf("%+v: a millisecond early: %+v", rate, q)
			}
			clock = clock.Add(one)
			if q := take(time.Microsecond); q.Over { // Redis counts in microseconds
				t.Errorf("%+v: refused when it should pass: %+v", rate, q)
			}
		}
		if q := take(2 * rate.Per); q.Remaining != rate.Limit-1 {
			t.Errorf("%+v: after a long time without requests: %+v, want the whole limit", rate, q)
		}
	}
}

func TestLimits_EntryExpiresWithinAMinute(t *testing.T) {
	t.Parallel()
	db := open(t, storetest.Redis(t))
	l := patient(NewLimits(db))
	for range 10 {
		counted(t, l, "admin:1:admin-7", 10)
	}
	left, err := db.Client.TTL(t.Context(), "rate:motorpool:admin:1:admin-7").Result()
	if err != nil || left <= 0 || left > time.Minute {
		t.Errorf("the entry expires in %v, %v; want at most a minute", left, err)
	}
}

func TestLimits_UnavailableRedisIsTriedOncePerSecondAndLoggedOnce(t *testing.T) {
	server := storetest.StartRedis(t)
	for _, trouble := range []struct {
		name       string
		begin, end func() error
	}{
		{"killed", server.Kill, server.Restart},
		{"frozen", server.Pause, server.Resume},
	} {
		t.Run(trouble.name, func(t *testing.T) {
			var log bytes.Buffer
			l := NewLimits(open(t, server.URL()))
			clock := storetest.NewClock(time.Now())
			l.breaker.Log, l.breaker.Now = slog.New(slog.NewTextHandler(&log, nil)), clock.Now
			counted(t, l, "vehicle:1", 1_000)
			require.NoError(t, trouble.begin())
			refused := func(within time.Duration) {
				t.Helper()
				start := time.Now()
				if _, err := takeOne(t.Context(), l, "vehicle:1", perMinute(1_000), 1); !unavailable.Is(err) {
					t.Errorf("Take = %v, want unavailable", err)
				}
				if took := time.Since(start); took > within {
					t.Errorf("Take took %v, want at most %v", took, within)
				}
			}
			// On a busy machine 1000 requests that wait take minutes.
			const slack = 10 * time.Second
			refused(ReadTimeout + slack)
			start := time.Now()
			for range 1_000 {
				refused(slack)
			}
			if took := time.Since(start); took > slack {
				t.Errorf("1000 requests took %v", took)
			}
			clock.Move(unavailable.RetryAfter)
			refused(ReadTimeout + slack) // tries whether Redis is available again
			refused(slack)
			require.NoError(t, trouble.end())
			storetest.Eventually(t, "requests are counted again", func() bool {
				clock.Move(unavailable.RetryAfter)
				_, err := takeOne(t.Context(), l, "vehicle:1", perMinute(1_000), 1)
				return err == nil
			})
			counted(t, l, "vehicle:1", 1_000)
			if text := log.String(); strings.Count(text, "level=WARN") != 1 ||
				strings.Count(text, "counted against their limits again") != 1 ||
				!strings.Contains(text, "missed=100") {
				t.Errorf("log:\n%s", text)
			}
		})
	}
}

func TestLimits_OneRequestAtATimeTriesAnUnavailableRedis(t *testing.T) {
	l := NewLimits(open(t, storetest.NoRedis))
	clock := storetest.NewClock(time.Now())
	l.breaker.Now = clock.Now
	if _, err := takeOne(t.Context(), l, "vehicle:1", perMinute(10), 1); !unavailable.Is(err) {
		t.Fatalf("Take = %v, want unavailable", err)
	}
	clock.Move(unavailable.RetryAfter)
	var slow atomic.Int64
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if l.breaker.Allow() {
				slow.Add(1)
			}
		})
	}
	all.Wait()
	assert.Equal(t, slow.Load(), 1, "requests try an unavailable Redis")
}

func TestLimits_CancelledCallerDoesNotMarkRedisUnavailable(t *testing.T) {
	l := limitsAt(t, miniredis(t))
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := takeOne(gone, l, "vehicle:1", perMinute(10), 1); err == nil {
		t.Error("Take with a cancelled context returned no error")
	}
	counted(t, l, "vehicle:1", 10)
}

func TestTake_CostIsTakenAsAWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			l := limitsAt(t, address)
			for i, want := range []struct {
				n    int
				over bool
			}{{1000, false}, {1000, false}, {900, true}, {1, false}} {
				q, err := takeOne(t.Context(), l, "bulk:1:admin", perMinute(2020), want.n)
				if err != nil || q.Over != want.over || q.Over && (q.Reset < time.Second || q.Reset > time.Minute) {
					t.Errorf("case %d, cost %d: %+v, %v", i, want.n, q, err)
				}
			}
		})
	}
}

func TestTake_StopsAtTheFirstExhaustedLimit(t *testing.T) {
	t.Parallel()
	devstack.NeedServer(t, devstack.RedisServer)
	cluster, err := devstack.StartRedisCluster(t.TempDir(), 3, nil)
	require.NoError(t, err)
	t.Cleanup(func() { _ = cluster.Close() })
	for name, address := range map[string]string{
		"miniredis": miniredis(t), "redis": storetest.Redis(t), "cluster": cluster.URL(),
	} {
		t.Run(name, func(t *testing.T) {
			l := limitsAt(t, address)
			// The remaining requests of each limit; the last request is of another actor.
			want := [][]int{{3, 1}, {2, 0}, {1, over}, {0, over}, {over}, {over}, {3, over}}
			requests := func(prefix string) (requests [][]telematics.Limit) {
				for i := range want {
					actor, vehicle := prefix+"a", prefix+"vehicle:1"
					if i == len(want)-1 {
						actor = prefix + "b"
					}
					requests = append(
						requests,
						[]telematics.Limit{{Key: actor, Rate: perMinute(4), Cost: 1}, {Key: vehicle, Rate: perMinute(2), Cost: 1}},
					)
				}
				return requests
			}
			for i, limits := range requests("alone:") {
				quotas, err := l.Take(t.Context(), limits...)
				if got := remaining(quotas); err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("request %d: %v, %v, want %v", i+1, got, err, want[i])
				}
			}
			if l.db.isCluster() { // the limits of a request are on several masters
				return
			}
			results, err := l.takeEach(t.Context(), requests("together:"))
			require.NoError(t, err)
			for i, result := range results {
				if got := remaining(result.quotas); result.err != nil || !slices.Equal(got, want[i]) {
					t.Errorf("in one round trip, request %d: %v, %v, want %v", i+1, got, result.err, want[i])
				}
			}
		})
	}
}

const over = -1

// remaining returns what remains of each quota, or over.
func remaining(quotas []telematics.Quota) (left []int) {
	for _, q := range quotas {
		if q.Over {
			q.Remaining = over
		}
		left = append(left, q.Remaining)
	}
	return left
}

func TestTake_FirstRequestLeavesOneLessThanTheLimit(t *testing.T) {
	t.Parallel()
	l := limitsAt(t, storetest.Redis(t))
	for limit := 590; limit < 620; limit++ {
		assert.Equal(t, counted(t, l, strconv.Itoa(limit), limit).Remaining, limit-1, "limit %d: remaining", limit)
	}
}

// An entry from a time at which Redis's clock had leapt ahead refuses for as long as an exhausted
// limit does, and no longer.
func TestTake_EntryFromTheFutureIsAnExhaustedLimit(t *testing.T) {
	t.Parallel()
	for name, address := range storetest.BothRedis(t) {
		t.Run(name, func(t *testing.T) {
			l := limitsAt(t, address)
			require.NoError(t, l.db.Client.Set(t.Context(), limitKey("vehicle:1"), time.Now().AddDate(74, 0, 0).Unix()-1483228800,
				0).Err())
			if q := counted(t, l, "vehicle:1", 10); !q.Over || q.Reset > 6*time.Second {
				t.Errorf("%+v, want it exhausted, and one request restored within 6 s", q)
			}
		})
	}
}

// Instances of the previous version count with the library that writes these entries.
func TestLimits_EntriesAreCompatibleWithThePreviousVersion(t *testing.T) {
	t.Parallel()
	server := storetest.StartMiniredis(t)
	server.SetTime(time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC))
	db := open(t, server.URL())
	l := patient(NewLimits(db))
	counted(t, l, "vehicle:1", 10)
	counted(t, l, "vehicle:1", 10)
	const tenOClock = 1767348000 - 1483228800
	if entry, err := db.Client.Get(t.Context(), "rate:motorpool:vehicle:1").Float64(); err != nil || entry != tenOClock+12 {
		t.Errorf("entry %v, %v; want the time at which the limit is restored", entry, err)
	}
}
