package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"motorpool/internal/assert"
	"motorpool/internal/require"
)

// statement is the statement of a group; it takes a second of virtual time.
type statement struct {
	mu      sync.Mutex
	batches [][]int
	fails   func(batch []int) error
}

const statementTime = time.Second

func (s *statement) run(ctx context.Context, batch []int) ([]string, error) {
	s.mu.Lock()
	s.batches = append(s.batches, slices.Clone(batch))
	s.mu.Unlock()
	select {
	case <-time.After(statementTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if s.fails != nil {
		if err := s.fails(batch); err != nil {
			return nil, err
		}
	}
	results := make([]string, len(batch))
	for i, n := range batch {
		results[i] = fmt.Sprint("result ", n)
	}
	return results, nil
}

// refusedBatch is the error of a batch in which one request is at fault.
type refusedBatch string

func (r refusedBatch) Error() string { return string(r) }

func isSplit(err error) bool { return errors.As(err, new(refusedBatch)) }

// group returns the group of the statement, with batches of at most 4 and a limit of 3 s.
func (s *statement) group() *Batcher[int, string] {
	return New(Limits{MaxBatch: 4, Timeout: 3 * time.Second, Splits: isSplit}, s.run)
}

// call starts calls a millisecond apart, and returns their errors when all have returned.
func call(t *testing.T, g *Batcher[int, string], n int) []error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			result, err := g.Do(t.Context(), i)
			if err == nil && result != fmt.Sprint("result ", i) {
				t.Errorf("call %d got %q", i, result)
			}
			errs[i] = err
		})
		time.Sleep(time.Millisecond)
	}
	wg.Wait()
	time.Sleep(maxPause) // until the group is idle
	return errs
}

func TestBatcher_PausesAfterALargeBatch(t *testing.T) {
	for _, c := range []struct {
		first, second int // the requests of a batch, and those that begin after it
		want          [][]int
	}{
		{pauseFrom, 3, [][]int{{-1}, {0, 1, 2, 3}, {10, 11, 12}}},
		{pauseFrom - 1, 3, [][]int{{-1}, {0, 1, 2}, {10}, {11, 12}}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &statement{}
			g := s.group()
			start := func(n int) { g.Begin(n); synctest.Wait() }
			start(-1)
			for n := range c.first {
				start(n)
			}
			time.Sleep(2*statementTime + pauseEach/10)
			for n := range c.second {
				start(10 + n)
				time.Sleep(pauseEach / 10)
			}
			time.Sleep(time.Minute)
			s.mu.Lock()
			defer s.mu.Unlock()
			assert.DeepEqual(t, s.batches, c.want, "batches")
		})
	}
}

func TestBatcher_WaitingCallsShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statement{}
		require.NoError(t, errors.Join(call(t, s.group(), 7)...))
		// The first call starts alone immediately. The calls that queued meanwhile follow, up to
		// the limit.
		assert.DeepEqual(t, s.batches, [][]int{{0}, {1, 2, 3, 4}, {5, 6}}, "batches")
	})
}

func TestBatcher_IdleGroupDelaysNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statement{}
		g := s.group()
		for range 3 {
			start := time.Now()
			if _, err := g.Do(t.Context(), 0); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took != statementTime {
				t.Errorf("a call took %v, its statement %v", took, statementTime)
			}
			time.Sleep(time.Hour) // synctest would fail if a goroutine were left at the end
		}
	})
}

func TestBatcher_CancelledCallerDoesNotAffectTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statement{}
		g := s.group()
		ctx, cancel := context.WithTimeout(t.Context(), statementTime/2)
		defer cancel()
		var wg sync.WaitGroup
		for i, want := range []error{context.DeadlineExceeded, context.DeadlineExceeded, nil} {
			wg.Go(func() {
				ctx := ctx
				if want == nil {
					ctx = t.Context()
				}
				if _, err := g.Do(ctx, i); !errors.Is(err, want) {
					t.Errorf("call %d: %v, want %v", i, err, want)
				}
			})
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		// Call 0 was running when its caller left; call 1 was still queued and is not made.
		assert.DeepEqual(t, s.batches, [][]int{{0}, {2}}, "batches")
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := g.Do(ended, 3); !errors.Is(err, context.Canceled) || len(s.batches) != 2 {
			t.Errorf("a call with an ended context: %v, batches %v", err, s.batches)
		}
	})
}

func TestBatcher_BatchHasASeparateTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := New(Limits{MaxBatch: 4, Timeout: 3 * time.Second}, func(ctx context.Context, batch []int) ([]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		start := time.Now()
		_, err := g.Do(t.Context(), 0)
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 3*time.Second {
			t.Errorf("%v after %v, want a timeout after 3 s", err, took)
		}
	})
}

func TestBatcher_ErrorReachesEveryCallerOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		s := &statement{fails: func(batch []int) error {
			if slices.Contains(batch, 2) {
				return broken
			}
			return nil
		}}
		for i, err := range call(t, s.group(), 6) {
			if want := i >= 1 && i <= 4; errors.Is(err, broken) != want {
				t.Errorf("call %d: error %v", i, err)
			}
		}
		if len(s.batches) != 3 {
			t.Errorf("batches %v, want 3: an error that no single request causes is not retried", s.batches)
		}
	})
}

func TestBatcher_PanicReachesEveryCallerOfTheBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statement{fails: func(batch []int) error {
			if slices.Contains(batch, 2) {
				panic("panic of the test")
			}
			return nil
		}}
		for i, err := range call(t, s.group(), 6) {
			if want := i >= 1 && i <= 4; (err != nil && strings.Contains(err.Error(), "panic of the test")) != want {
				t.Errorf("call %d: error %v", i, err)
			}
		}
	})
}

func TestBatcher_OneBadRowDoesNotFailTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, code := range []string{"22P05", "23503", "40P01"} {
			refused := refusedBatch(code)
			s := &statement{fails: func(batch []int) error {
				if slices.Contains(batch, 2) {
					return refused
				}
				return nil
			}}
			for i, err := range call(t, s.group(), 5) {
				if want := i == 2; errors.Is(err, refused) != want {
					t.Errorf("%s: call %d: error %v", code, i, err)
				}
			}
			assert.DeepEqual(t, s.batches, [][]int{{0}, {1, 2, 3, 4}, {1, 2}, {3, 4}, {1}, {2}}, "%s: batches", code)
		}
	})
}

// A split must not hold up what queues behind it, however many of its requests are bad, and
// however long each attempt takes.
func TestBatcher_SplitOfABatchIsBounded(t *testing.T) {
	for name, c := range map[string]struct {
		bad      func(int) bool
		attempts int // at the whole batch and its parts
	}{
		"one bad request":   {func(n int) bool { return n == 100 }, 1 + 2*8},
		"all requests fail": {func(int) bool { return true }, 1 + 4}, // within 3 s
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took := time.Second
				if name == "one bad request" {
					took = time.Millisecond // a violated constraint
				}
				attempts, refused := 0, refusedBatch("bad")
				g := New(
					Limits{MaxBatch: 256, Timeout: 3 * time.Second, Splits: isSplit},
					func(_ context.Context, batch []int) ([]string, error) {
						attempts++
						time.Sleep(took)
						if slices.ContainsFunc(batch, c.bad) {
							return nil, refused
						}
						return make([]string, len(batch)), nil
					},
				)
				var calls []*Call[int, string]
				for n := range 256 {
					call, _ := g.enqueue(n)
					calls = append(calls, call)
				}
				_ = g.serve(t.Context())
				for n, call := range calls {
					if _, err := g.Wait(t.Context(), call); (err != nil) != c.bad(n) {
						t.Errorf("request %d: error %v", n, err)
					}
				}
				assert.Equal(t, attempts, c.attempts, "attempts")
			})
		})
	}
}

// A request that was not tried alone before the time was over is not blamed for the failure of
// its batch, and may be tried again.
func TestBatcher_WhatWasNotTriedIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refused := refusedBatch("bad")
		tried := map[int]bool{} // alone
		g := New(Limits{MaxBatch: 64, Timeout: 3 * time.Second, Splits: isSplit}, func(_ context.Context, batch []int) ([]string, error) {
			time.Sleep(310 * time.Millisecond)
			if len(batch) == 1 {
				tried[batch[0]] = true
			}
			if slices.Contains(batch, 10) {
				return nil, refused
			}
			return make([]string, len(batch)), nil
		})
		var calls []*Call[int, string]
		for n := range 64 {
			call, _ := g.enqueue(n)
			calls = append(calls, call)
		}
		_ = g.serve(t.Context())
		left := 0
		for n, call := range calls {
			_, err := g.Wait(t.Context(), call)
			if err == nil || tried[n] {
				continue
			}
			left++
			var later interface{ Unavailable() bool }
			if errors.Is(err, refused) || !errors.As(err, &later) || !later.Unavailable() {
				t.Errorf("request %d was not tried alone: error %v, want one that says so", n, err)
			}
		}
		if left == 0 {
			t.Error("all requests were tried, want the time to be over before")
		}
	})
}

func TestBatcher_MissingResultsAreAnError(t *testing.T) {
	g := New(Limits{MaxBatch: 4, Timeout: time.Second}, func(context.Context, []int) ([]string, error) { return nil, nil })
	if _, err := g.Do(t.Context(), 0); err == nil {
		t.Error("a statement without results returned no error")
	}
}

func TestBatcher_BegunRequestsShareABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statement{}
		g := s.group()
		first, second := g.Begin(1), g.Begin(2)
		time.Sleep(statementTime / 2) // the first batch is running
		if result, err := g.Do(t.Context(), 3); result != "result 3" || err != nil {
			t.Errorf("Do = %q, %v", result, err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		for n, begun := range []*Call[int, string]{first, second} {
			// The result is available although the context has ended.
			if result, err := g.Wait(ended, begun); result != fmt.Sprint("result ", n+1) || err != nil {
				t.Errorf("Wait = %q, %v", result, err)
			}
		}
		late := g.Begin(4)
		if _, err := g.Wait(ended, late); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want it canceled", err)
		}
		synctest.Wait()
		running := g.Begin(5)
		time.Sleep(statementTime / 2)
		waiting := g.Begin(6)
		if _, err := g.Wait(ended, waiting); !errors.Is(err, context.Canceled) {
			t.Errorf("Wait = %v, want it canceled", err)
		}
		if result, err := g.Wait(t.Context(), running); result != "result 5" || err != nil {
			t.Errorf("Wait = %q, %v", result, err)
		}
		time.Sleep(2 * statementTime)
		for _, batch := range s.batches {
			if slices.Contains(batch, 6) {
				t.Errorf("batches %v, want none with call 6, whose caller left while it was queued", s.batches)
			}
		}
	})
}
